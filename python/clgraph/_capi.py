# SPDX-License-Identifier: Apache-2.0
"""The C interface in ctypes. Made by tools/generate_capi.py; do not edit."""

# fmt: off
from ctypes import (
    CFUNCTYPE, Structure, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t,
    c_uint32, c_uint64, c_void_p,
)

CLG_MAX_RANK = 8
CLG_VERSION_MAJOR = 0
CLG_VERSION_MINOR = 1
CLG_VERSION_PATCH = 0

# clg_status
CLG_OK = 0
CLG_ERROR_INVALID_ARGUMENT = -1
CLG_ERROR_INVALID_MODEL = -2
CLG_ERROR_UNSUPPORTED_OPERATOR = -3
CLG_ERROR_UNSUPPORTED_ATTRIBUTE = -4
CLG_ERROR_UNSUPPORTED_DTYPE = -5
CLG_ERROR_SHAPE = -6
CLG_ERROR_DATA = -7
CLG_ERROR_NOT_FOUND = -8
CLG_ERROR_NO_OPENCL = -9
CLG_ERROR_NO_DEVICE = -10
CLG_ERROR_UNSUPPORTED_DEVICE = -11
CLG_ERROR_OUT_OF_HOST_MEMORY = -12
CLG_ERROR_OUT_OF_DEVICE_MEMORY = -13
CLG_ERROR_KERNEL_BUILD = -14
CLG_ERROR_DEVICE_LOST = -15
CLG_ERROR_IO = -16
CLG_ERROR_CANCELLED = -17
CLG_ERROR_BUSY = -18
CLG_ERROR_INTERNAL = -19
CLG_ERROR_LIMIT = -20
CLG_ERROR_FORKED = -21

# clg_log_level
CLG_LOG_ERROR = 0
CLG_LOG_WARNING = 1
CLG_LOG_INFO = 2
CLG_LOG_DEBUG = 3

# clg_device_kind
CLG_DEVICE_CPU = 0
CLG_DEVICE_INTEGRATED_GPU = 1
CLG_DEVICE_DISCRETE_GPU = 2
CLG_DEVICE_ACCELERATOR = 3

# clg_kernel_class
CLG_KERNELS_AUTO = 0
CLG_KERNELS_SIMD = 1
CLG_KERNELS_SIMT = 2

# clg_selftest
CLG_SELFTEST_DEFAULT = 0
CLG_SELFTEST_ON = 1
CLG_SELFTEST_OFF = 2

# clg_compilation
CLG_COMPILATION_DEFAULT = 0
CLG_COMPILATION_TIERED = 1
CLG_COMPILATION_OPTIMIZED = 2
CLG_COMPILATION_BASELINE = 3

# clg_generator_cache
CLG_CACHE_AUTO = 0
CLG_CACHE_GROWING = 1
CLG_CACHE_RESERVED = 2
CLG_CACHE_NONE = 3

# clg_generator_end
CLG_END_NONE = 0
CLG_END_EOS = 1
CLG_END_LENGTH = 2
CLG_END_STOP = 3

# clg_place
CLG_PLACE_DEVICE = 0
CLG_PLACE_LOAD = 1
CLG_PLACE_SHAPE = 2
CLG_PLACE_VIEW = 3
CLG_PLACE_HOST = 4
CLG_PLACE_FUSED = 5

# clg_split
CLG_SPLIT_ROWS = 0
CLG_SPLIT_LAYERS = 1

# clg_precision
CLG_PRECISION_FP32 = 0
CLG_PRECISION_FP16 = 1
CLG_PRECISION_AUTO = 2

# clg_loss
CLG_LOSS_OUTPUT = 0
CLG_LOSS_CROSS_ENTROPY = 1
CLG_LOSS_NLL = 2
CLG_LOSS_BCE_WITH_LOGITS = 3
CLG_LOSS_MSE = 4
CLG_LOSS_L1 = 5
CLG_LOSS_HUBER = 6

# clg_optimizer
CLG_OPTIMIZER_SGD = 0
CLG_OPTIMIZER_ADAM = 1
CLG_OPTIMIZER_ADAMW = 2
CLG_OPTIMIZER_ADAGRAD = 3
CLG_OPTIMIZER_RMSPROP = 4

# clg_schedule
CLG_SCHEDULE_CONSTANT = 0
CLG_SCHEDULE_STEP = 1
CLG_SCHEDULE_EXPONENTIAL = 2
CLG_SCHEDULE_LINEAR = 3
CLG_SCHEDULE_COSINE = 4

# clg_train_form
CLG_FORM_MODEL = 0
CLG_FORM_PREDICTION = 1
CLG_FORM_TRAINING = 2

# clg_on_nan
CLG_ON_NAN_STOP = 0
CLG_ON_NAN_SKIP = 1

# clg_dtype
CLG_DTYPE_NONE = 0
CLG_FLOAT32 = 1
CLG_UINT8 = 2
CLG_INT8 = 3
CLG_UINT16 = 4
CLG_INT16 = 5
CLG_INT32 = 6
CLG_INT64 = 7
CLG_STRING = 8
CLG_BOOL = 9
CLG_FLOAT16 = 10
CLG_FLOAT64 = 11
CLG_UINT32 = 12
CLG_UINT64 = 13
CLG_COMPLEX64 = 14
CLG_COMPLEX128 = 15
CLG_BFLOAT16 = 16
CLG_FLOAT8E4M3FN = 17
CLG_FLOAT8E4M3FNUZ = 18
CLG_FLOAT8E5M2 = 19
CLG_FLOAT8E5M2FNUZ = 20
CLG_UINT4 = 21
CLG_INT4 = 22
CLG_FLOAT4E2M1 = 23
CLG_FLOAT8E8M0 = 24
CLG_UINT2 = 25
CLG_INT2 = 26

# clg_value_kind
CLG_VALUE_TENSOR = 0
CLG_VALUE_SEQUENCE = 1
CLG_VALUE_OPTIONAL = 2
CLG_VALUE_MAP = 3

clg_log_callback = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
clg_compile_callback = CFUNCTYPE(None, c_void_p, c_char_p, c_bool)
clg_external_data_callback = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_uint64, c_void_p)
clg_unload_callback = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
clg_progress_callback = CFUNCTYPE(c_bool, c_void_p, c_char_p, c_size_t, c_size_t)
clg_stream_callback = CFUNCTYPE(c_int, c_void_p, c_void_p)
clg_release_callback = CFUNCTYPE(None, c_void_p)


class clg_allocator(Structure):
    _fields_ = [
        ("resize", c_void_p),
        ("user", c_void_p),
    ]


class clg_call_input(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_size_t),
        ("dims", c_void_p),
        ("data", c_void_p),
        ("size_bytes", c_size_t),
        ("value", c_void_p),
    ]


class clg_call_output(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("capacity_bytes", c_size_t),
        ("value", c_void_p),
        ("kind", c_int),
        ("dtype", c_int),
        ("rank", c_size_t),
        ("dims", c_int64 * CLG_MAX_RANK),
        ("size_bytes", c_size_t),
    ]


class clg_device_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("selector", c_char_p),
        ("id", c_char_p),
        ("platform", c_char_p),
        ("name", c_char_p),
        ("vendor", c_char_p),
        ("driver", c_char_p),
        ("opencl_version", c_char_p),
        ("quirks", c_char_p),
        ("kind", c_int),
        ("kernel_class", c_int),
        ("compute_units", c_uint32),
        ("max_clock_mhz", c_uint32),
        ("global_mem_bytes", c_uint64),
        ("max_alloc_bytes", c_uint64),
        ("local_mem_bytes", c_uint64),
        ("unified_memory", c_bool),
        ("probed", c_bool),
        ("fp16", c_bool),
        ("fp64", c_bool),
        ("subgroups", c_bool),
        ("int8_dot", c_bool),
        ("matrix", c_bool),
        ("is_default", c_bool),
        ("auto_reason", c_char_p),
        ("vendor_id", c_uint32),
        ("pci_domain", c_uint32),
        ("pci_bus", c_uint32),
        ("pci_device", c_uint32),
        ("pci_function", c_uint32),
    ]


class clg_context_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("fallback", c_char_p),
        ("cache_dir", c_char_p),
        ("cpu_threads", c_uint32),
        ("profiling", c_bool),
        ("selftest", c_int),
        ("compile_helper", c_char_p),
        ("compile_limit_s", c_uint32),
        ("compile_limit_mib", c_uint32),
        ("max_launch_ms", c_uint32),
        ("compilation", c_int),
    ]


class clg_generator_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("session", c_void_p),
        ("max_context", c_uint64),
        ("chunk", c_uint32),
        ("cache", c_int),
        ("read_files", c_bool),
    ]


class clg_generator_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("model_type", c_char_p),
        ("vocabulary", c_uint64),
        ("max_context", c_uint64),
        ("n_layers", c_uint64),
        ("bos", c_int64),
        ("pad", c_int64),
        ("eos", c_void_p),
        ("n_eos", c_size_t),
        ("cache", c_int),
    ]


class clg_sampling(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("temperature", c_double),
        ("top_k", c_uint32),
        ("top_p", c_double),
        ("min_p", c_double),
        ("repetition_penalty", c_double),
        ("seed", c_uint64),
        ("max_new", c_uint64),
    ]


class clg_generator_stats(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("n_prompt_tokens", c_uint64),
        ("prompt_s", c_double),
        ("n_new_tokens", c_uint64),
        ("new_s", c_double),
        ("sampling_s", c_double),
        ("n_runs", c_uint64),
        ("n_cached", c_uint64),
        ("capacity", c_uint64),
        ("cache_bytes", c_uint64),
    ]


class clg_image_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("channels", c_int),
        ("keep_16_bits", c_bool),
        ("max_pixels", c_uint64),
    ]


class clg_measurement(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("fp32_gflops", c_double),
        ("fp16_gflops", c_double),
        ("memory_gbytes_per_s", c_double),
        ("upload_gbytes_per_s", c_double),
        ("download_gbytes_per_s", c_double),
        ("launch_us", c_double),
    ]


class clg_model_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("ir_version", c_int64),
        ("opset", c_int64),
        ("producer", c_char_p),
        ("graph_name", c_char_p),
        ("n_nodes", c_size_t),
        ("n_parameters", c_int64),
        ("parameter_bytes", c_uint64),
        ("unsupported", c_char_p),
        ("missing_data", c_char_p),
    ]


class clg_node_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("domain", c_char_p),
        ("op_type", c_char_p),
        ("opset", c_int64),
        ("supported", c_bool),
        ("place", c_int),
        ("reason", c_char_p),
        ("outputs", c_void_p),
        ("n_outputs", c_size_t),
        ("inputs", c_void_p),
        ("n_inputs", c_size_t),
    ]


class clg_shape_override(Structure):
    _fields_ = [
        ("input", c_char_p),
        ("rank", c_size_t),
        ("dims", c_int64 * CLG_MAX_RANK),
    ]


class clg_node_estimate(Structure):
    _fields_ = [
        ("flops", c_double),
        ("n_parameters", c_int64),
        ("parameter_bytes", c_uint64),
        ("outputs", c_void_p),
        ("n_outputs", c_size_t),
    ]


class clg_batch_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("input_axes", c_void_p),
        ("shapes", c_void_p),
        ("n_shapes", c_size_t),
    ]


class clg_operator_info(Structure):
    _fields_ = [
        ("domain", c_char_p),
        ("name", c_char_p),
        ("family", c_char_p),
        ("since", c_int),
        ("until", c_int),
        ("dtypes", c_char_p),
        ("place", c_char_p),
        ("gradient", c_char_p),
    ]


class clg_step_profile(Structure):
    _fields_ = [
        ("node", c_char_p),
        ("op_type", c_char_p),
        ("kernel", c_char_p),
        ("start_us", c_double),
        ("duration_us", c_double),
        ("queued_us", c_double),
        ("flops", c_double),
        ("bytes", c_double),
        ("impl", c_char_p),
        ("problem", c_char_p),
        ("impls", c_char_p),
    ]


class clg_selftest_case(Structure):
    _fields_ = [
        ("op_type", c_char_p),
        ("problem", c_char_p),
        ("impl", c_char_p),
        ("kernel", c_char_p),
        ("has_choice", c_bool),
        ("passed", c_bool),
        ("worst_error", c_double),
        ("bound", c_double),
        ("failure", c_char_p),
    ]


class clg_counters(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("programs_compiled", c_uint64),
        ("programs_loaded", c_uint64),
        ("kernels_launched", c_uint64),
        ("blas_calls", c_uint64),
        ("plans_made", c_uint64),
        ("weights_packed", c_uint64),
        ("device_bytes", c_uint64),
        ("device_bytes_peak", c_uint64),
        ("bytes_to_device", c_uint64),
        ("bytes_from_device", c_uint64),
    ]


class clg_cache_entry(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("what", c_char_p),
        ("size_bytes", c_uint64),
        ("used_seconds", c_int64),
    ]


class clg_limits(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("max_memory_bytes", c_uint64),
        ("max_steps", c_uint64),
        ("max_compile_ms", c_uint64),
        ("max_run_ms", c_uint64),
    ]


class clg_model_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("allow_external_data_missing", c_bool),
        ("allow_unsupported", c_bool),
        ("read_files", c_bool),
        ("cancel", c_void_p),
        ("limits", c_void_p),
        ("external_data", clg_external_data_callback),
        ("external_release", clg_release_callback),
        ("external_user", c_void_p),
        ("external_unload", clg_unload_callback),
    ]


class clg_port(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("dtype", c_int),
        ("rank", c_int),
        ("dims", c_int64 * CLG_MAX_RANK),
        ("dim_names", c_char_p * CLG_MAX_RANK),
        ("key_dtype", c_int),
    ]


class clg_model_save_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("external_bytes", c_size_t),
        ("producer", c_char_p),
    ]


class clg_multi_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("hang_ms", c_uint32),
        ("split", c_int),
    ]


class clg_session_part(Structure):
    _fields_ = [
        ("device", c_void_p),
        ("session", c_void_p),
        ("rows", c_uint64),
        ("share", c_double),
        ("rows_per_s", c_double),
        ("busy_s", c_double),
        ("idle_share", c_double),
        ("is_lost", c_bool),
        ("n_nodes", c_size_t),
        ("first_node", c_char_p),
        ("last_node", c_char_p),
        ("weight_bytes", c_uint64),
        ("crossing_bytes", c_uint64),
    ]


class clg_session_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kernels", c_int),
        ("no_blas", c_bool),
        ("strict", c_bool),
        ("disabled_passes", c_void_p),
        ("n_disabled_passes", c_size_t),
        ("progress", clg_progress_callback),
        ("progress_user", c_void_p),
        ("preferred_impls", c_void_p),
        ("n_preferred_impls", c_size_t),
        ("precision", c_int),
        ("keep_fp32", c_void_p),
        ("n_keep_fp32", c_size_t),
        ("max_iterations", c_uint64),
        ("cancel", c_void_p),
        ("limits", c_void_p),
    ]


class clg_memory_estimate(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("weight_bytes", c_uint64),
        ("slab_bytes", c_uint64),
        ("io_bytes", c_uint64),
        ("largest_buffer_bytes", c_uint64),
        ("live_bytes", c_uint64),
    ]


class clg_stream_tensor(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_size_t),
        ("dims", c_int64 * CLG_MAX_RANK),
        ("row_bytes", c_size_t),
        ("data", c_void_p),
    ]


class clg_stream_batch(Structure):
    _fields_ = [
        ("first_row", c_uint64),
        ("n_rows", c_size_t),
        ("n_tensors", c_size_t),
        ("tensors", c_void_p),
    ]


class clg_stream_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("batch", c_size_t),
        ("depth", c_size_t),
        ("outputs", c_void_p),
        ("n_outputs", c_size_t),
    ]


class clg_stream_stats(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rows", c_uint64),
        ("batches", c_uint64),
        ("seconds", c_double),
        ("read_seconds", c_double),
        ("write_seconds", c_double),
        ("idle_share", c_double),
    ]


class clg_loss_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("output", c_char_p),
        ("target", c_char_p),
        ("has_ignore_index", c_bool),
        ("ignore_index", c_int64),
        ("label_smoothing", c_float),
        ("delta", c_float),
        ("weights", c_void_p),
        ("n_weights", c_size_t),
    ]


class clg_optimizer_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("weight_decay", c_double),
        ("momentum", c_double),
        ("dampening", c_double),
        ("nesterov", c_bool),
        ("beta1", c_double),
        ("beta2", c_double),
        ("alpha", c_double),
        ("centered", c_bool),
        ("epsilon", c_double),
        ("rate_decay", c_double),
    ]


class clg_schedule_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("rate", c_double),
        ("last_rate", c_double),
        ("gamma", c_double),
        ("period", c_uint64),
        ("total_steps", c_uint64),
        ("warmup_steps", c_uint64),
    ]


class clg_train_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("loss", c_void_p),
        ("optimizer", c_void_p),
        ("schedule", c_void_p),
        ("train", c_void_p),
        ("n_train", c_size_t),
        ("freeze", c_void_p),
        ("n_freeze", c_size_t),
        ("clip_value", c_double),
        ("clip_norm", c_double),
        ("accumulate", c_uint32),
        ("session", c_void_p),
        ("batchnorm", c_int),
        ("population_variance", c_bool),
        ("dropout", c_int),
        ("seed", c_uint64),
        ("step_metrics", c_bool),
        ("on_nan", c_int),
        ("data_settings", c_char_p),
        ("parts", c_uint32),
    ]


class clg_train_stats(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("step", c_uint64),
        ("loss", c_double),
        ("rate", c_double),
        ("gradient_norm", c_double),
        ("n_right", c_uint64),
        ("n_counted", c_uint64),
        ("skipped", c_uint64),
    ]


class clg_measures(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("loss", c_double),
        ("n_right", c_uint64),
        ("n_counted", c_uint64),
    ]


FUNCTIONS = {
    "clg_builder_attribute_float": (c_int, [c_void_p, c_char_p, c_float]),
    "clg_builder_attribute_floats": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "clg_builder_attribute_int": (c_int, [c_void_p, c_char_p, c_int64]),
    "clg_builder_attribute_ints": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "clg_builder_attribute_string": (c_int, [c_void_p, c_char_p, c_char_p]),
    "clg_builder_attribute_strings": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "clg_builder_build": (c_int, [c_void_p, c_void_p]),
    "clg_builder_constant": (c_int, [c_void_p, c_char_p, c_int, c_size_t, c_void_p, c_void_p,
        c_size_t]),
    "clg_builder_create": (c_int, [c_int64, c_void_p]),
    "clg_builder_create_from_model": (c_int, [c_void_p, c_int64, c_void_p]),
    "clg_builder_free": (None, [c_void_p]),
    "clg_builder_input": (c_int, [c_void_p, c_char_p, c_int, c_size_t, c_void_p, c_void_p]),
    "clg_builder_node": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t, c_void_p,
        c_size_t, c_void_p]),
    "clg_builder_output": (c_int, [c_void_p, c_char_p]),
    "clg_bytes_free": (None, [c_void_p]),
    "clg_cache_clear": (c_int, [c_char_p, c_void_p]),
    "clg_cache_list": (c_int, [c_char_p, c_void_p, c_void_p]),
    "clg_cache_list_free": (None, [c_void_p, c_size_t]),
    "clg_cache_pack": (c_int, [c_char_p, c_char_p]),
    "clg_cache_path": (c_int, [c_char_p, c_void_p]),
    "clg_cache_prune": (c_int, [c_char_p, c_uint64, c_void_p]),
    "clg_cache_remove": (c_int, [c_char_p, c_char_p, c_void_p]),
    "clg_cache_unpack": (c_int, [c_char_p, c_char_p, c_void_p]),
    "clg_cancel_create": (c_int, [c_void_p]),
    "clg_cancel_free": (None, [c_void_p]),
    "clg_cancel_is_triggered": (c_bool, [c_void_p]),
    "clg_cancel_reset": (None, [c_void_p]),
    "clg_cancel_trigger": (None, [c_void_p]),
    "clg_context_add_choices": (c_int, [c_void_p, c_char_p]),
    "clg_context_choices": (c_int, [c_void_p, c_void_p]),
    "clg_context_counters": (c_int, [c_void_p, c_void_p]),
    "clg_context_create": (c_int, [c_char_p, c_void_p, c_void_p]),
    "clg_context_create_list": (c_int, [c_char_p, c_void_p, c_void_p, c_void_p]),
    "clg_context_create_opencl": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_context_device": (c_void_p, [c_void_p]),
    "clg_context_free": (None, [c_void_p]),
    "clg_context_list_free": (None, [c_void_p, c_size_t]),
    "clg_context_measure": (c_int, [c_void_p, c_void_p]),
    "clg_context_opencl": (c_void_p, [c_void_p]),
    "clg_context_opencl_device": (c_void_p, [c_void_p]),
    "clg_context_recover": (c_int, [c_void_p]),
    "clg_context_selftest": (c_int, [c_void_p, c_int, c_bool, clg_progress_callback, c_void_p,
        c_void_p, c_void_p]),
    "clg_device_kind_name": (c_char_p, [c_int]),
    "clg_device_list": (c_int, [c_void_p, c_void_p]),
    "clg_device_list_free": (None, [c_void_p, c_size_t]),
    "clg_device_probe": (c_int, [c_void_p]),
    "clg_device_select": (c_int, [c_char_p, c_char_p, c_void_p, c_void_p]),
    "clg_device_selftests": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "clg_diagnose": (c_int, [c_void_p]),
    "clg_dtype_name": (c_char_p, [c_int]),
    "clg_dtype_size": (c_size_t, [c_int]),
    "clg_file_write": (c_int, [c_char_p, c_void_p, c_size_t]),
    "clg_generator_append": (c_int, [c_void_p, c_void_p, c_size_t]),
    "clg_generator_append_text": (c_int, [c_void_p, c_char_p, c_size_t]),
    "clg_generator_cancel": (None, [c_void_p]),
    "clg_generator_describe": (c_int, [c_void_p, c_void_p]),
    "clg_generator_free": (None, [c_void_p]),
    "clg_generator_get_sampling": (c_int, [c_void_p, c_void_p]),
    "clg_generator_get_stats": (c_int, [c_void_p, c_void_p]),
    "clg_generator_logits": (c_int, [c_void_p, c_void_p, c_size_t]),
    "clg_generator_n_tokens": (c_size_t, [c_void_p]),
    "clg_generator_next": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_generator_next_text": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_generator_open": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "clg_generator_rewind": (c_int, [c_void_p, c_size_t]),
    "clg_generator_set_sampling": (c_int, [c_void_p, c_void_p]),
    "clg_generator_set_stops": (c_int, [c_void_p, c_void_p, c_size_t]),
    "clg_generator_tokens": (c_void_p, [c_void_p]),
    "clg_get_log": (clg_log_callback, [c_void_p]),
    "clg_ids_free": (None, [c_void_p]),
    "clg_image_decode": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "clg_image_size": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_implementation_name": (c_char_p, [c_size_t]),
    "clg_indices_free": (None, [c_void_p]),
    "clg_last_error": (c_char_p, []),
    "clg_last_hint": (c_char_p, []),
    "clg_model_add_loss": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_model_batch": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_model_dot": (c_int, [c_void_p, c_void_p]),
    "clg_model_extract": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
    "clg_model_file_nodes": (c_int, [c_char_p, c_void_p, c_void_p]),
    "clg_model_flops": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "clg_model_free": (None, [c_void_p]),
    "clg_model_get_info": (c_int, [c_void_p, c_void_p]),
    "clg_model_gradient": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p]),
    "clg_model_initializer": (c_void_p, [c_void_p, c_size_t]),
    "clg_model_initializer_value": (c_int, [c_void_p, c_size_t, c_void_p]),
    "clg_model_input": (c_void_p, [c_void_p, c_size_t]),
    "clg_model_load_file": (c_int, [c_char_p, c_void_p, c_void_p]),
    "clg_model_load_memory": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "clg_model_memory": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "clg_model_n_initializers": (c_size_t, [c_void_p]),
    "clg_model_n_inputs": (c_size_t, [c_void_p]),
    "clg_model_n_outputs": (c_size_t, [c_void_p]),
    "clg_model_node_estimates": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "clg_model_nodes": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_model_output": (c_void_p, [c_void_p, c_size_t]),
    "clg_model_replace_initializers": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "clg_model_save": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_model_save_memory": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_name_matches": (c_bool, [c_char_p, c_char_p]),
    "clg_node_estimate_list_free": (None, [c_void_p, c_size_t]),
    "clg_node_list_free": (None, [c_void_p, c_size_t]),
    "clg_npy_reader_dims": (c_void_p, [c_void_p]),
    "clg_npy_reader_dtype": (c_int, [c_void_p]),
    "clg_npy_reader_free": (None, [c_void_p]),
    "clg_npy_reader_open": (c_int, [c_char_p, c_void_p]),
    "clg_npy_reader_rank": (c_size_t, [c_void_p]),
    "clg_npy_reader_read": (c_int, [c_void_p, c_int64, c_size_t, c_void_p, c_size_t]),
    "clg_npy_writer_append": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "clg_npy_writer_commit": (c_int, [c_void_p]),
    "clg_npy_writer_flush": (c_int, [c_void_p]),
    "clg_npy_writer_free": (None, [c_void_p]),
    "clg_npy_writer_open": (c_int, [c_char_p, c_int, c_size_t, c_void_p, c_void_p]),
    "clg_npy_writer_open_part": (c_int, [c_char_p, c_int, c_size_t, c_void_p, c_int64, c_void_p]),
    "clg_npz_free": (None, [c_void_p, c_void_p, c_size_t]),
    "clg_npz_load": (c_int, [c_char_p, c_void_p, c_void_p, c_void_p]),
    "clg_npz_reader_free": (None, [c_void_p]),
    "clg_npz_reader_header": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "clg_npz_reader_n_arrays": (c_size_t, [c_void_p]),
    "clg_npz_reader_name": (c_char_p, [c_void_p, c_size_t]),
    "clg_npz_reader_open": (c_int, [c_char_p, c_void_p]),
    "clg_npz_reader_read": (c_int, [c_void_p, c_size_t, c_void_p]),
    "clg_npz_save": (c_int, [c_char_p, c_void_p, c_void_p, c_size_t]),
    "clg_operator_list": (c_int, [c_void_p, c_void_p]),
    "clg_operator_list_free": (None, [c_void_p, c_size_t]),
    "clg_place_name": (c_char_p, [c_int]),
    "clg_selftest_free": (None, [c_void_p, c_size_t]),
    "clg_session_bind_output": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_session_call": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]),
    "clg_session_cancel": (None, [c_void_p]),
    "clg_session_clone": (c_int, [c_void_p, c_void_p]),
    "clg_session_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_session_create_multi": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p,
        c_void_p]),
    "clg_session_event": (c_int, [c_void_p, c_void_p]),
    "clg_session_free": (None, [c_void_p]),
    "clg_session_get_output": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_session_get_output_data": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "clg_session_get_output_device": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_session_keep_values": (c_int, [c_void_p, c_void_p, c_size_t]),
    "clg_session_link": (c_int, [c_void_p, c_char_p, c_char_p]),
    "clg_session_map_input": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p, c_void_p]),
    "clg_session_memory": (c_int, [c_void_p, c_void_p]),
    "clg_session_nodes": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_session_opencl_queue": (c_void_p, [c_void_p]),
    "clg_session_parts": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_session_parts_free": (None, [c_void_p, c_size_t]),
    "clg_session_plan_text": (c_int, [c_void_p, c_void_p]),
    "clg_session_precision": (c_int, [c_void_p]),
    "clg_session_prepare": (c_int, [c_void_p, clg_progress_callback, c_void_p]),
    "clg_session_profile": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_session_profile_free": (None, [c_void_p, c_size_t]),
    "clg_session_run": (c_int, [c_void_p]),
    "clg_session_run_async": (c_int, [c_void_p]),
    "clg_session_set_input": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_session_set_input_data": (c_int, [c_void_p, c_char_p, c_int, c_size_t, c_void_p, c_void_p,
        c_size_t]),
    "clg_session_set_input_shape": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "clg_session_wait": (c_int, [c_void_p]),
    "clg_session_wait_for_events": (c_int, [c_void_p, c_uint32, c_void_p]),
    "clg_set_allocator": (c_int, [c_void_p]),
    "clg_set_compile_callback": (None, [clg_compile_callback, c_void_p]),
    "clg_set_log": (None, [clg_log_callback, c_void_p, c_int]),
    "clg_status_name": (c_char_p, [c_int]),
    "clg_stream_cancel": (None, [c_void_p]),
    "clg_stream_create": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "clg_stream_free": (None, [c_void_p]),
    "clg_stream_get_stats": (c_int, [c_void_p, c_void_p]),
    "clg_stream_run": (c_int, [c_void_p, clg_stream_callback, clg_stream_callback, c_void_p]),
    "clg_text_free": (None, [c_void_p]),
    "clg_token_stream_create": (c_int, [c_void_p, c_bool, c_void_p]),
    "clg_token_stream_end": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_token_stream_free": (None, [c_void_p]),
    "clg_token_stream_push": (c_int, [c_void_p, c_int64, c_void_p, c_void_p]),
    "clg_tokenizer_decode": (c_int, [c_void_p, c_void_p, c_size_t, c_bool, c_void_p, c_void_p]),
    "clg_tokenizer_encode": (c_int, [c_void_p, c_char_p, c_size_t, c_bool, c_void_p, c_void_p]),
    "clg_tokenizer_free": (None, [c_void_p]),
    "clg_tokenizer_id": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_tokenizer_is_special": (c_bool, [c_void_p, c_int64]),
    "clg_tokenizer_open": (c_int, [c_char_p, c_void_p]),
    "clg_tokenizer_size": (c_size_t, [c_void_p]),
    "clg_tokenizer_special_id": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_tokenizer_token": (c_char_p, [c_void_p, c_int64]),
    "clg_train_row": (c_uint64, [c_uint64, c_uint64, c_uint64, c_uint64]),
    "clg_trainer_cancel": (None, [c_void_p]),
    "clg_trainer_check_parts": (c_int, [c_void_p]),
    "clg_trainer_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "clg_trainer_evaluate": (c_int, [c_void_p, c_void_p]),
    "clg_trainer_free": (None, [c_void_p]),
    "clg_trainer_get_gradient": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_trainer_get_parameter": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_trainer_load": (c_int, [c_void_p, c_char_p]),
    "clg_trainer_measure": (c_int, [c_void_p, c_void_p]),
    "clg_trainer_memory": (c_int, [c_void_p, c_void_p]),
    "clg_trainer_model": (c_int, [c_void_p, c_void_p]),
    "clg_trainer_n_parameters": (c_size_t, [c_void_p]),
    "clg_trainer_n_steps": (c_uint64, [c_void_p]),
    "clg_trainer_parameter": (c_void_p, [c_void_p, c_size_t]),
    "clg_trainer_save": (c_int, [c_void_p, c_char_p]),
    "clg_trainer_session": (c_int, [c_void_p, c_void_p]),
    "clg_trainer_set_input": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_trainer_set_parameter": (c_int, [c_void_p, c_char_p, c_void_p]),
    "clg_trainer_step": (c_int, [c_void_p, c_void_p]),
    "clg_value_cast": (c_int, [c_void_p, c_int, c_void_p, c_void_p]),
    "clg_value_copy": (c_int, [c_void_p, c_void_p]),
    "clg_value_create": (c_int, [c_int, c_size_t, c_void_p, c_void_p]),
    "clg_value_create_device": (c_int, [c_void_p, c_int, c_size_t, c_void_p, c_void_p]),
    "clg_value_create_map": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_value_create_opencl": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_size_t, c_void_p,
        c_void_p]),
    "clg_value_create_optional": (c_int, [c_int, c_void_p, c_void_p]),
    "clg_value_create_sequence": (c_int, [c_int, c_size_t, c_void_p, c_void_p]),
    "clg_value_data": (c_void_p, [c_void_p]),
    "clg_value_dims": (c_void_p, [c_void_p]),
    "clg_value_dtype": (c_int, [c_void_p]),
    "clg_value_free": (None, [c_void_p]),
    "clg_value_get_double": (c_double, [c_void_p, c_int64]),
    "clg_value_get_kind": (c_int, [c_void_p]),
    "clg_value_item": (c_void_p, [c_void_p, c_size_t]),
    "clg_value_load": (c_int, [c_char_p, c_void_p]),
    "clg_value_load_kind": (c_int, [c_char_p, c_int, c_void_p]),
    "clg_value_map_keys": (c_void_p, [c_void_p]),
    "clg_value_map_values": (c_void_p, [c_void_p]),
    "clg_value_n_elements": (c_int64, [c_void_p]),
    "clg_value_n_items": (c_size_t, [c_void_p]),
    "clg_value_opencl": (c_int, [c_void_p, c_void_p, c_void_p]),
    "clg_value_rank": (c_size_t, [c_void_p]),
    "clg_value_read": (c_int, [c_void_p, c_void_p, c_size_t]),
    "clg_value_retain": (c_void_p, [c_void_p]),
    "clg_value_save": (c_int, [c_void_p, c_char_p]),
    "clg_value_size_bytes": (c_size_t, [c_void_p]),
    "clg_value_to_host": (c_int, [c_void_p, c_void_p]),
    "clg_value_wrap": (c_int, [c_int, c_size_t, c_void_p, c_void_p, c_size_t, clg_release_callback,
        c_void_p, c_void_p]),
    "clg_value_write": (c_int, [c_void_p, c_void_p, c_size_t]),
    "clg_version": (c_char_p, []),
}
