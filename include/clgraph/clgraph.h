/* SPDX-License-Identifier: Apache-2.0
 *
 * clgraph: neural-network prediction on any OpenCL device, from C.
 *
 * Ten lines that predict (error handling left out; every call returns a clg_status):
 *
 *     clg_context *context;
 *     clg_model *model;
 *     clg_session *session;
 *     float picture[64] = {0}, probabilities[10];
 *     clg_context_create(NULL, NULL, &context);
 *     clg_model_load_file("digits.onnx", NULL, &model);
 *     clg_session_create(context, model, NULL, &session);
 *     clg_session_set_input_data(session, "image", CLG_FLOAT32, 4, (int64_t[]){1, 1, 8, 8}, picture);
 *     clg_session_run(session);
 *     clg_session_get_output_data(session, "probabilities", probabilities, sizeof probabilities);
 *
 * Rules that hold for every function
 *   - A function that can fail returns clg_status: CLG_OK (0) or a negative code. Results go through
 *     out-parameters, set to NULL or zero on failure. clg_last_error() has the sentence.
 *   - Handles returned through out_ parameters are owned by the caller and released by the matching
 *     _free, which accepts NULL. Children keep their parents alive: the order of frees does not matter.
 *     Plain pointers that are returned are borrowed and live as long as the object they came from.
 *   - A pointer must not be NULL unless its function says so: INVALID_ARGUMENT, naming it. Functions that
 *     return no status take a NULL object as an empty one. Any call that returns a status may also return
 *     OUT_OF_HOST_MEMORY; "Errors" lists the rest. Texts and arrays that are passed in are only read
 *     during the call. Names, paths and messages are UTF-8.
 *   - Option structs start with CLG_<NAME>_INIT; a zero field means the default; NULL means all defaults. Structs
 *     that a call fills start with their INIT as well: it tells the library how much of them there is.
 *   - Threads: contexts, models and values that nobody writes are shared freely. A session runs one
 *     request at a time; clg_session_clone gives another thread its own. clg_session_cancel may be
 *     called from any thread.
 *   - The library never exits, aborts or prints.
 */
#ifndef CLGRAPH_CLGRAPH_H
#define CLGRAPH_CLGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(CLG_BUILDING)
#define CLG_API __declspec(dllexport)
#elif defined(_WIN32)
#define CLG_API /* functions alone: a linker imports them without being told */
#elif defined(__GNUC__)
#define CLG_API __attribute__((visibility("default")))
#else
#define CLG_API
#endif
#if defined(__GNUC__)
#define CLG_MUST_USE __attribute__((warn_unused_result))
#else
#define CLG_MUST_USE
#endif

/* ---- version ------------------------------------------------------------------------------- */

#define CLG_VERSION_MAJOR 0
#define CLG_VERSION_MINOR 1
#define CLG_VERSION_PATCH 0

/* The version of the library that is running, "0.1.0". Never NULL. */
CLG_API const char *clg_version(void);

/* ---- status -------------------------------------------------------------------------------- */

typedef enum clg_status {
    CLG_OK = 0,
    CLG_ERROR_INVALID_ARGUMENT = -1,      /* a parameter of the call */
    CLG_ERROR_INVALID_MODEL = -2,         /* the file or graph breaks ONNX's rules */
    CLG_ERROR_UNSUPPORTED_OPERATOR = -3,  /* an operator (or version) that clgraph does not have */
    CLG_ERROR_UNSUPPORTED_ATTRIBUTE = -4, /* the operator is there, this attribute value is not */
    CLG_ERROR_UNSUPPORTED_DTYPE = -5,     /* the operator is there, this element type is not */
    CLG_ERROR_SHAPE = -6,                 /* shapes, ranks or values of shape inputs do not fit */
    CLG_ERROR_DATA = -7,       /* a value at run time is out of range: an index in Gather */
    CLG_ERROR_NOT_FOUND = -8,  /* a name that the model, cache or folder does not have */
    CLG_ERROR_NO_OPENCL = -9,  /* no OpenCL loader or no platform on this machine */
    CLG_ERROR_NO_DEVICE = -10, /* OpenCL is there, no device matches the selector */
    CLG_ERROR_UNSUPPORTED_DEVICE = -11, /* the device lacks what is asked */
    CLG_ERROR_OUT_OF_HOST_MEMORY = -12,
    CLG_ERROR_OUT_OF_DEVICE_MEMORY = -13,
    CLG_ERROR_KERNEL_BUILD = -14, /* the driver's compiler refused a kernel */
    CLG_ERROR_DEVICE_LOST = -15,  /* the device or driver failed during work */
    CLG_ERROR_IO = -16,           /* a file cannot be read or written */
    CLG_ERROR_CANCELLED = -17,
    CLG_ERROR_BUSY = -18,    /* the session is running another request */
    CLG_ERROR_INTERNAL = -19 /* a defect of clgraph: please report it */
} clg_status;

/* The name of a status, "CLG_ERROR_IO"; "unknown status" for a number that is none. */
CLG_API const char *clg_status_name(clg_status status);

/* What the calling thread's last failed call said: a full sentence naming what failed, on which node,
 * tensor or device. Never NULL; "" when nothing failed. Valid until the thread's next failing call: a call
 * that succeeds leaves it. */
CLG_API const char *clg_last_error(void);

/* What to try about the last error, "" when there is no advice. Same lifetime. */
CLG_API const char *clg_last_hint(void);

/* ---- log and memory ------------------------------------------------------------------------ */

typedef enum clg_log_level {
    CLG_LOG_ERROR = 0,
    CLG_LOG_WARNING = 1,
    CLG_LOG_INFO = 2,
    CLG_LOG_DEBUG = 3
} clg_log_level;

/* message: without a newline at its end, valid during the call. */
typedef void (*clg_log_callback)(void *user, clg_log_level level, const char *message);

/* Sends messages up to `level` to `callback`; NULL silences (the default). Process-wide; may be set at
 * any time; the callback may be called from any thread, one call at a time. Once this has returned, the
 * callback before is no longer running. */
CLG_API void clg_set_log(clg_log_callback callback, void *user, clg_log_level level);

/* Memory hooks. `resize(user, NULL, n)` allocates, `resize(user, p, n)` grows or shrinks,
 * `resize(user, p, 0)` frees and returns NULL. Alignment as malloc's. May be called from any thread. */
typedef struct clg_allocator {
    void *(*resize)(void *user, void *memory, size_t size_bytes);
    void *user;
} clg_allocator;

/* Sets the process-wide allocator, which is copied; NULL brings malloc back. Only before the first object is
 * created and after the last is freed; otherwise CLG_ERROR_INVALID_ARGUMENT. Not while other threads call. */
CLG_API CLG_MUST_USE clg_status clg_set_allocator(const clg_allocator *allocator);

/* ---- element types and values ---------------------------------------------------------------- */

#define CLG_MAX_RANK 8

/* Element types, numbered as ONNX's TensorProto.DataType. */
typedef enum clg_dtype {
    CLG_DTYPE_NONE = 0,
    CLG_FLOAT32 = 1,
    CLG_UINT8 = 2,
    CLG_INT8 = 3,
    CLG_UINT16 = 4,
    CLG_INT16 = 5,
    CLG_INT32 = 6,
    CLG_INT64 = 7,
    CLG_STRING = 8,
    CLG_BOOL = 9, /* one byte, 0 or 1 */
    CLG_FLOAT16 = 10,
    CLG_FLOAT64 = 11,
    CLG_UINT32 = 12,
    CLG_UINT64 = 13,
    CLG_COMPLEX64 = 14,
    CLG_COMPLEX128 = 15,
    CLG_BFLOAT16 = 16,
    CLG_FLOAT8E4M3FN = 17,
    CLG_FLOAT8E4M3FNUZ = 18,
    CLG_FLOAT8E5M2 = 19,
    CLG_FLOAT8E5M2FNUZ = 20,
    CLG_UINT4 = 21,
    CLG_INT4 = 22,
    CLG_FLOAT4E2M1 = 23,
    CLG_FLOAT8E8M0 = 24,
    CLG_UINT2 = 25,
    CLG_INT2 = 26
} clg_dtype;

/* "float32"; "unknown dtype" for a number that is none. */
CLG_API const char *clg_dtype_name(clg_dtype dtype);
/* Bytes of one element; 0 for strings and for types of less than a byte. */
CLG_API size_t clg_dtype_size(clg_dtype dtype);

typedef struct clg_context clg_context;
typedef struct clg_model clg_model;
typedef struct clg_session clg_session;
typedef struct clg_value clg_value;
typedef struct clg_builder clg_builder;

typedef enum clg_value_kind {
    CLG_VALUE_TENSOR = 0,
    CLG_VALUE_SEQUENCE = 1,
    CLG_VALUE_OPTIONAL = 2,
    CLG_VALUE_MAP = 3
} clg_value_kind;

/* May be called from any thread: the one that lets the last reference go. */
typedef void (*clg_release_callback)(void *user);

/* A tensor in host memory, row-major, filled with zeros. dims: rank numbers >= 0, may be NULL for rank 0;
 * rank 0..CLG_MAX_RANK. Errors: INVALID_ARGUMENT (dtype, rank, negative or overflowing dims). */
CLG_API CLG_MUST_USE clg_status clg_value_create(clg_dtype dtype, size_t rank, const int64_t *dims,
                                                 clg_value **out_value);
/* The same over the caller's memory, not copied, row-major; data may be NULL for no elements. Strings are a char * each,
 * NUL-terminated, UTF-8, NULL for the empty one; they stay on the host.
 * `release(user)` (may be NULL) is called when the last reference is gone, not when this call fails. */
CLG_API CLG_MUST_USE clg_status clg_value_wrap(clg_dtype dtype, size_t rank, const int64_t *dims,
                                               void *data, clg_release_callback release, void *user,
                                               clg_value **out_value);
/* A tensor in the memory of the context's device; contents undefined until written.
 * Errors: as clg_value_create (strings are INVALID_ARGUMENT), OUT_OF_DEVICE_MEMORY. */
CLG_API CLG_MUST_USE clg_status clg_value_create_device(clg_context *context, clg_dtype dtype,
                                                        size_t rank, const int64_t *dims,
                                                        clg_value **out_value);
/* Copies between a tensor (host or device) and the caller's memory; size_bytes must be the tensor's, data may
 * be NULL when it is 0. Blocks until done. Errors: INVALID_ARGUMENT (another size, strings, no tensor),
 * DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_write(clg_value *value, const void *data,
                                                size_t size_bytes);
CLG_API CLG_MUST_USE clg_status clg_value_read(const clg_value *value, void *data,
                                               size_t size_bytes);
/* A host copy of any value; a new reference to it when it is on the host already. Errors: DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_to_host(clg_value *value, clg_value **out_value);

/* A sequence of these values, which it keeps references to: tensors of `dtype`, or sequences, optionals and maps of such. items
 * may be NULL when n_items is 0. dtype may be CLG_DTYPE_NONE: then it is that of the first. An optional holds one value
 * or, with item NULL, none. Errors: INVALID_ARGUMENT (an item NULL or of another dtype, nested more than 64 deep). */
CLG_API CLG_MUST_USE clg_status clg_value_create_sequence(clg_dtype dtype, size_t n_items,
                                                          clg_value *const *items,
                                                          clg_value **out_value);
CLG_API CLG_MUST_USE clg_status clg_value_create_optional(clg_dtype dtype, clg_value *item,
                                                          clg_value **out_value);
/* What is in a sequence, or in an optional, which has one item or none; tensors and maps have none. The item is borrowed, NULL
 * when i is out of range. */
CLG_API size_t clg_value_n_items(const clg_value *value);
CLG_API clg_value *clg_value_item(const clg_value *value, size_t i);
/* A map from keys, a tensor [n] of int64 or strings, to values, a tensor [n] of any dtype; it keeps references to both.
 * That no key is there twice is the caller's to see to. Classifiers of scikit-learn give a sequence of maps, one a row, from
 * classes to probabilities. Errors: INVALID_ARGUMENT (another dtype of keys, other shapes). */
CLG_API CLG_MUST_USE clg_status clg_value_create_map(clg_value *keys, clg_value *values,
                                                     clg_value **out_value);
/* The two tensors of a map, borrowed; NULL when the value is none. Maps of one output may share their keys. */
CLG_API clg_value *clg_value_map_keys(const clg_value *value);
CLG_API clg_value *clg_value_map_values(const clg_value *value);

/* What a value is. NULL reads as a tensor without dtype, dimensions and elements; so do rank, dims and sizes
 * of sequences, optionals and maps, whose dtype is that of their tensors, of a map's values. */
CLG_API clg_value_kind clg_value_get_kind(const clg_value *value);
CLG_API clg_dtype clg_value_dtype(const clg_value *value);
CLG_API size_t clg_value_rank(const clg_value *value);
/* As many as clg_value_rank says; never NULL, borrowed. */
CLG_API const int64_t *clg_value_dims(const clg_value *value);
CLG_API int64_t clg_value_n_elements(const clg_value *value);
CLG_API size_t clg_value_size_bytes(const clg_value *value);
/* The host memory, row-major; NULL for a device tensor. Writing is allowed only while no run uses the value. */
CLG_API void *clg_value_data(const clg_value *value);
/* Counts references, from any thread; both accept NULL. retain returns its argument. */
CLG_API clg_value *clg_value_retain(clg_value *value);
CLG_API void clg_value_free(clg_value *value);

/* ---- devices ----------------------------------------------------------------------------------- */

typedef enum clg_device_kind {
    CLG_DEVICE_CPU = 0,
    CLG_DEVICE_INTEGRATED_GPU = 1,
    CLG_DEVICE_DISCRETE_GPU = 2,
    CLG_DEVICE_ACCELERATOR = 3
} clg_device_kind;

typedef enum clg_kernel_class {
    CLG_KERNELS_AUTO = 0, /* simd on CPU devices, simt on the rest */
    CLG_KERNELS_SIMD = 1, /* explicit vectors, one work-item a group */
    CLG_KERNELS_SIMT = 2  /* work-group tiles in local memory */
} clg_kernel_class;

/* One OpenCL device. Strings are never NULL and live as long as the list or context they came from. */
typedef struct clg_device_info {
    size_t struct_size;
    const char *selector;       /* "0:0", what cltool devices prints: platform and device index */
    const char *id;             /* stable between starts: "id:..." */
    const char *platform;       /* name of the platform */
    const char *name;           /* name of the device */
    const char *vendor;         /* vendor of the platform */
    const char *driver;         /* driver version */
    const char *opencl_version; /* "OpenCL 3.0 PoCL HSTR..." */
    const char *quirks;         /* names of applied quirks, comma-separated, "" for none */
    clg_device_kind kind;
    clg_kernel_class kernel_class;
    uint32_t compute_units;
    uint32_t max_clock_mhz;
    uint64_t global_mem_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_mem_bytes;
    bool unified_memory;
    /* Proved by building and running probes; all false until the device was probed (clg_device_probe in
     * inspect.h, or a context on it). */
    bool probed, fp16, fp64, subgroups, int8_dot, matrix;
    bool is_default;         /* the one that "auto" takes */
    const char *auto_reason; /* why auto takes it, or why it never does */
} clg_device_info;

/* Every OpenCL device of the machine, usable or not, in platform order. Errors: NO_OPENCL. */
CLG_API CLG_MUST_USE clg_status clg_device_list(clg_device_info **out_devices,
                                                size_t *out_n_devices);
/* Frees the array of clg_device_list, of which devices is the first element; accepts NULL. */
CLG_API void clg_device_list_free(clg_device_info *devices, size_t n_devices);

/* Whether kernels are tested before they are trusted. Where there are several implementations of a node, the one that is chosen
 * first computes a small problem on the device, which is compared with the host's answer; the verdict is kept in the store,
 * and an implementation that is wrong is not used on that device and driver: the log tells, and another one takes its place. */
typedef enum clg_selftest {
    CLG_SELFTEST_DEFAULT = 0, /* as $CLG_SELFTEST says: "off", else on */
    CLG_SELFTEST_ON = 1,
    CLG_SELFTEST_OFF = 2 /* verdicts of earlier tests do not count either */
} clg_selftest;

typedef struct clg_context_options {
    size_t struct_size;
    const char *fallback; /* selector that serves when nothing matches; NULL: none */
    const char *
        cache_dir; /* store of compiled programs; NULL: $CLG_CACHE_DIR, else the user's cache folder;
                               "" keeps everything in memory */
    uint32_t cpu_threads; /* compute units to use of a CPU device; 0: all */
    bool profiling;       /* queues keep time stamps; needed by clg_session_profile */
    clg_selftest selftest;
    /* The program clgraph-compile, in which kernels are compiled first, so that a driver's compiler that crashes, hangs or
     * takes all memory ends that process and not this one. NULL: $CLG_COMPILE_HELPER, else beside the library; "off": none;
     * else an absolute path. Never started from a setuid program. */
    const char *compile_helper;
    uint32_t compile_limit_s;   /* seconds that one build may take in it; 0: 60 */
    uint32_t compile_limit_mib; /* resident MiB that it may take; 0: 4096 */
} clg_context_options;
#define CLG_CONTEXT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_context_options), NULL, NULL, 0, false, CLG_SELFTEST_DEFAULT, NULL, 0, 0        \
    }

/* A device made ready for work. selector, without regard to case, first meaning that fits: auto, gpu, cpu, all;
 * id:...; a vendor (nvidia, amd, intel, pocl, mesa: of the platform); P:D as clg_device_info has it; the name of
 * a device or platform, or a part of one; WORD#N: the N-th match, from 0. NULL: $CLG_DEVICE, else auto. Exactly
 * one device is used: the best match. options may be NULL. With an empty store this compiles small probes.
 * Errors: NO_OPENCL, NO_DEVICE (the message lists what there is), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY,
 * DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_create(const char *selector,
                                                   const clg_context_options *options,
                                                   clg_context **out_context);
/* The device, probed; borrowed, lives as long as the context. NULL for NULL. */
CLG_API const clg_device_info *clg_context_device(const clg_context *context);
CLG_API void clg_context_free(clg_context *context);

/* ---- models ------------------------------------------------------------------------------------ */

typedef struct clg_model_options {
    size_t struct_size;
    bool
        allow_external_data_missing; /* only look at the model: sessions then fail with NOT_FOUND */
    bool
        allow_unsupported; /* the same for operators, attributes and dtypes: sessions fail as loading would */
} clg_model_options;
#define CLG_MODEL_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_model_options), false, false                                                    \
    }

/* One input or output of a model. dims[i] < 0: chosen at run time; dim_names[i] is then its symbol or "". Of
 * outputs, what could be told without a run. */
typedef struct clg_port {
    const char *name;
    clg_value_kind kind;
    clg_dtype dtype; /* CLG_DTYPE_NONE: not known */
    int rank;        /* -1: any */
    int64_t dims[CLG_MAX_RANK];
    const char *dim_names[CLG_MAX_RANK];
    clg_dtype key_dtype; /* of the maps that it is or holds; CLG_DTYPE_NONE: there are none */
} clg_port;

/* Loads ONNX. The file is mapped and must not change while the model lives; memory is copied. External
 * data is read relative to the file, never outside its folder; a model in memory can have none. options may
 * be NULL. A model never changes and is shared freely between threads and contexts.
 * Errors: IO, INVALID_MODEL, SHAPE and DATA (shapes and constants that cannot be), UNSUPPORTED_OPERATOR (all
 * operators that are missing, with their nodes), UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_DTYPE. */
CLG_API CLG_MUST_USE clg_status clg_model_load_file(const char *path,
                                                    const clg_model_options *options,
                                                    clg_model **out_model);
CLG_API CLG_MUST_USE clg_status clg_model_load_memory(const void *data, size_t size_bytes,
                                                      const clg_model_options *options,
                                                      clg_model **out_model);
CLG_API void clg_model_free(clg_model *model);
CLG_API size_t clg_model_n_inputs(const clg_model *model);
CLG_API size_t clg_model_n_outputs(const clg_model *model);
/* In the model's order; borrowed from the model. NULL when index is out of range. */
CLG_API const clg_port *clg_model_input(const clg_model *model, size_t index);
CLG_API const clg_port *clg_model_output(const clg_model *model, size_t index);

/* ---- building a graph without ONNX -------------------------------------------------------------- */

/* A builder makes the same graph that a file would: nodes are ONNX operators, values are joined by name.
 * Nodes may be added before what they read. A call that fails adds nothing to the graph. Not for several
 * threads at once. opset: version of ONNX's default operator set, >= 1; nodes of other domains have version 1.
 * Errors of all: INVALID_ARGUMENT, INVALID_MODEL (a value that is given twice). */
CLG_API CLG_MUST_USE clg_status clg_builder_create(int64_t opset, clg_builder **out_builder);
CLG_API void clg_builder_free(clg_builder *builder);
/* An input, in the order of calls. dims[i] < 0 for one chosen at run time; dim_names may be NULL, entries too. */
CLG_API CLG_MUST_USE clg_status clg_builder_input(clg_builder *builder, const char *name,
                                                  clg_dtype dtype, size_t rank, const int64_t *dims,
                                                  const char *const *dim_names);
/* A constant, of any dtype but string; data is copied, row-major, and may be NULL for no elements. */
CLG_API CLG_MUST_USE clg_status clg_builder_constant(clg_builder *builder, const char *name,
                                                     clg_dtype dtype, size_t rank,
                                                     const int64_t *dims, const void *data);
/* A node of the default domain (domain NULL or "") or another. name may be NULL. An input or output "" or NULL
 * is one left out. Attributes set next belong to it: INVALID_ARGUMENT when there is no node yet. */
CLG_API CLG_MUST_USE clg_status clg_builder_node(clg_builder *builder, const char *domain,
                                                 const char *op_type, const char *name,
                                                 size_t n_inputs, const char *const *inputs,
                                                 size_t n_outputs, const char *const *outputs);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_int(clg_builder *builder, const char *name,
                                                          int64_t value);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_float(clg_builder *builder, const char *name,
                                                            float value);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_string(clg_builder *builder, const char *name,
                                                             const char *value);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_ints(clg_builder *builder, const char *name,
                                                           size_t n, const int64_t *values);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_floats(clg_builder *builder, const char *name,
                                                             size_t n, const float *values);
/* Makes a value an output of the graph, in the order of calls. */
/* A list of strings, for `activations` of LSTM and its like. */
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_strings(clg_builder *builder,
                                                              const char *name, size_t n,
                                                              const char *const *values);
CLG_API CLG_MUST_USE clg_status clg_builder_output(clg_builder *builder, const char *name);
/* Checks the graph as a loaded model is checked. The builder can be freed afterwards or built upon.
 * Errors: INVALID_MODEL, SHAPE, DATA, UNSUPPORTED_OPERATOR, _ATTRIBUTE, _DTYPE. */
CLG_API CLG_MUST_USE clg_status clg_builder_build(clg_builder *builder, clg_model **out_model);

/* ---- sessions ------------------------------------------------------------------------------------ */

/* Called now and then by work that can take a second, on the thread that made the call; done of total steps of
 * `what`, "compiling kernels". Returning false cancels: the call ends with CLG_ERROR_CANCELLED. */
typedef bool (*clg_progress_callback)(void *user, const char *what, size_t done, size_t total);

/* What a model's float32 values between nodes are stored as. Its inputs and outputs keep their dtypes, and arithmetic is
 * float32 in both. In fp16 products (Conv, Gemm, MatMul, Attention) and cheap operators behind them read and write
 * float16, their weights too; what float16 would spoil stays float32. Beyond 65504 a value overflows. */
typedef enum clg_precision {
    CLG_PRECISION_FP32 = 0,
    CLG_PRECISION_FP16 = 1,
    CLG_PRECISION_AUTO = 2 /* FP16 on GPUs that were proved to have half arithmetic, else FP32 */
} clg_precision;

typedef struct clg_session_options {
    size_t struct_size;
    clg_kernel_class kernels; /* which kernels; default: the device's class */
    bool no_blas;             /* never use CLBlast */
    /* Refuse numeric work on the host, with UNSUPPORTED_OPERATOR where it is planned: operators without kernels that make
     * numbers of numbers (LabelEncoder, TfIdfVectorizer). Strings, control flow and arithmetic on shapes stay its own. */
    bool strict;
    const char *const
        *disabled_passes; /* names of graph passes not to run; an unknown one is INVALID_ARGUMENT
                                           and gets the names there are */
    size_t n_disabled_passes;
    clg_progress_callback progress; /* while the session is made; may be NULL */
    void *progress_user;
    const char *const *
        preferred_impls; /* implementations to take wherever a node has them, the best first; elsewhere estimates choose,
                                         whatever was measured. For tests and measuring; names as in clg_step_profile */
    size_t n_preferred_impls;
    clg_precision precision;
    /* With FP16: names of nodes that stay in float32; '*' stands for any characters or none, '?' for one. A node that took
     * others in goes by the name it has in plans. */
    const char *const *keep_fp32;
    size_t n_keep_fp32;
} clg_session_options;
#define CLG_SESSION_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_session_options), CLG_KERNELS_AUTO, false, false, NULL, 0, NULL, NULL, NULL, 0, \
            CLG_PRECISION_FP32, NULL, 0                                                            \
    }

/* Optimises the model for the context's device and computes there what depends on constants only. options may be
 * NULL. Sessions of one model, context and equal options share weights, plans and programs.
 * Errors: NOT_FOUND (data of the model was missing), UNSUPPORTED_* (a model loaded with allow_unsupported; a dtype
 * that the device lacks), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY, KERNEL_BUILD, DEVICE_LOST, DATA, CANCELLED. */
CLG_API CLG_MUST_USE clg_status clg_session_create(clg_context *context, clg_model *model,
                                                   const clg_session_options *options,
                                                   clg_session **out_session);
/* Another session over the same weights, plans and programs, with its own queue and buffers and nothing set: for
 * another thread. Errors: OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_session_clone(clg_session *session, clg_session **out_session);
/* A run in progress is cancelled and waited for. */
CLG_API void clg_session_free(clg_session *session);
/* FP32 or FP16: what a session computes in, and what AUTO decided. */
CLG_API clg_precision clg_session_precision(const clg_session *session);

/* Calls on a session while it works on another request return BUSY; clg_session_cancel, clg_session_clone and
 * clg_session_wait do not. */

/* Makes a session ready for inputs of the shapes that are set (clg_session_set_input_shape, or values), so
 * that the first run compiles nothing: plans, compiles, and runs once on zeros. Shapes not set are the declared
 * ones, free dimensions 1. progress may be NULL. What the session had as outputs is gone.
 * Errors: those of clg_session_create and SHAPE. */
CLG_API CLG_MUST_USE clg_status clg_session_prepare(clg_session *session,
                                                    clg_progress_callback progress, void *user);
/* The shape of an input for clg_session_prepare, clg_session_memory and plans; a value set later counts more.
 * Errors: NOT_FOUND, SHAPE (not one that the model declares), INVALID_ARGUMENT (also of a sequence or optional), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_set_input_shape(clg_session *session, const char *name,
                                                            size_t rank, const int64_t *dims);

/* Gives an input by reference; host and device values alike, those of another context go through the host. It
 * stays set until it is set again; NULL unsets it. Host memory is read by each run; devices that are the host's own
 * processor read large tensors where they lie, without a copy, where data begins at a multiple of 128 bytes (as that of
 * clg_value_create does).
 * A sequence or optional for an input that is one. Errors: NOT_FOUND (the inputs there are get listed), SHAPE,
 * UNSUPPORTED_DTYPE, INVALID_ARGUMENT (another kind of value), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_set_input(clg_session *session, const char *name,
                                                      clg_value *value);
/* The same from the caller's memory, row-major, copied now; data may be NULL for no elements. */
CLG_API CLG_MUST_USE clg_status clg_session_set_input_data(clg_session *session, const char *name,
                                                           clg_dtype dtype, size_t rank,
                                                           const int64_t *dims, const void *data);
/* Memory of the driver to be filled by the caller in place of a copy (pinned where the device has it), of the
 * dtype that the model declares; what it holds at first is undefined. The pointer is valid until the next run
 * or preparation starts, or this input is set or mapped again. Its content stays the input until then, and for
 * later runs. Errors: as clg_session_set_input, OUT_OF_DEVICE_MEMORY. */
CLG_API CLG_MUST_USE clg_status clg_session_map_input(clg_session *session, const char *name,
                                                      size_t rank, const int64_t *dims,
                                                      void **out_data);
/* From now on a run's output feeds this input of the next run, on the device. The input must be set once,
 * for the first run; setting it again starts over. output NULL undoes it. Errors: NOT_FOUND, UNSUPPORTED_DTYPE
 * (the two differ), INVALID_ARGUMENT (the output is bound, or feeds another input), BUSY; SHAPE at the next run
 * when the output does not fit. */
CLG_API CLG_MUST_USE clg_status clg_session_link(clg_session *session, const char *output,
                                                 const char *input);
/* Writes an output of the next runs into this value (host or device) in place of memory of the session's, which
 * keeps a reference to it. dtype and shape must be what the run produces (SHAPE, by the run), and it must not lie in the
 * memory of an input or of another output (INVALID_ARGUMENT, by the run). NULL undoes it. Errors: NOT_FOUND,
 * INVALID_ARGUMENT (linked, no tensor, device memory of another context), UNSUPPORTED_DTYPE (strings), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_bind_output(clg_session *session, const char *name,
                                                        clg_value *value);

/* Runs once with the inputs that are set, and waits. New shapes are planned now; kernels that were not needed
 * before are compiled now. After a failure outputs have no content, and the session can run again.
 * Errors: NOT_FOUND (an input is not set), SHAPE, DATA (an index out of range: the node is named), UNSUPPORTED_DEVICE,
 * UNSUPPORTED_DTYPE, OUT_OF_DEVICE_MEMORY, KERNEL_BUILD, DEVICE_LOST, CANCELLED, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_run(clg_session *session);
/* Starts a run on a thread of the session's and returns; clg_session_wait gives its result and its error, on the
 * waiting thread, and must be called once for each start. Values given as inputs, and bound outputs, must not be
 * touched in between. One run at a time: BUSY. wait: INVALID_ARGUMENT when no run was started. */
CLG_API CLG_MUST_USE clg_status clg_session_run_async(clg_session *session);
CLG_API CLG_MUST_USE clg_status clg_session_wait(clg_session *session);
/* Ends the run or preparation in progress with CANCELLED as soon as the work on the device allows: between two
 * steps. Without one in progress it does nothing. Any thread; accepts NULL. */
CLG_API void clg_session_cancel(clg_session *session);

/* An output of the last run, by name: a tensor, sequence or optional. The first in host memory: later runs leave it as
 * it is. The second as a reference to the session's device memory, which the next run overwrites. A bound value is
 * given back itself. Errors: NOT_FOUND (no such output, or no content: nothing ran), UNSUPPORTED_DTYPE (strings,
 * sequences and optionals on a device), OUT_OF_DEVICE_MEMORY, DEVICE_LOST, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_get_output(clg_session *session, const char *name,
                                                       clg_value **out_value);
CLG_API CLG_MUST_USE clg_status clg_session_get_output_device(clg_session *session,
                                                              const char *name,
                                                              clg_value **out_value);
/* The same into the caller's memory, row-major; INVALID_ARGUMENT when size_bytes is not the output's. */
CLG_API CLG_MUST_USE clg_status clg_session_get_output_data(clg_session *session, const char *name,
                                                            void *data, size_t size_bytes);

typedef struct clg_memory_estimate {
    size_t struct_size;
    uint64_t weight_bytes;         /* on the device, packed copies included */
    uint64_t slab_bytes;           /* intermediate values */
    uint64_t io_bytes;             /* inputs and outputs */
    uint64_t largest_buffer_bytes; /* the largest of these buffers */
    uint64_t
        live_bytes; /* of intermediate values that are needed at once: no slabs could be smaller */
} clg_memory_estimate;
#define CLG_MEMORY_ESTIMATE_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_memory_estimate), 0, 0, 0, 0, 0                                                 \
    }

/* What the session needs on the device for the shapes that are set, as clg_session_prepare takes them. Weights
 * are those on the device by now: all of them after a run. out_estimate starts with its INIT.
 * Errors: those of planning: SHAPE, UNSUPPORTED_*, OUT_OF_DEVICE_MEMORY; BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_memory(clg_session *session,
                                                   clg_memory_estimate *out_estimate);

#ifdef __cplusplus
}
#endif
#endif
