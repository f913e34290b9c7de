/* SPDX-License-Identifier: Apache-2.0
 *
 * clgraph: neural-network prediction on any OpenCL device, from C.
 *
 * A whole prediction (error handling left out; every call returns a clg_status):
 *
 *     clg_context *context;
 *     clg_model *model;
 *     clg_session *session;
 *     float image[64] = {0}, probabilities[10];
 *     clg_context_create(NULL, NULL, &context);
 *     clg_model_load_file("digits.onnx", NULL, &model);
 *     clg_session_create(context, model, NULL, &session);
 *     clg_session_set_input_data(session, "image", CLG_FLOAT32, 4, (int64_t[]){1, 1, 8, 8}, image,
 *                                sizeof image);
 *     clg_session_run(session);
 *     clg_session_get_output_data(session, "probabilities", probabilities, sizeof probabilities);
 *
 * Rules that hold for every function
 *   - A function that can fail returns clg_status: CLG_OK (0) or a negative code. Results go to
 *     out-parameters, set to NULL or zero on failure. clg_last_error() returns the message.
 *   - Handles returned through out_ parameters are owned by the caller and released by the matching
 *     _free, which accepts NULL. Children keep their parents alive: frees may be in any order.
 *     Plain pointers that are returned are borrowed and live as long as the object they came from.
 *   - A NULL pointer is an INVALID_ARGUMENT unless the function allows it. Functions that return
 *     no status treat a NULL object as an empty one. Any call that returns a status may also
 *     return OUT_OF_HOST_MEMORY; "Errors" lists the rest. Strings and arrays passed in are only
 *     read during the call. Names, paths and messages are UTF-8.
 *   - Option structs start with CLG_<NAME>_INIT; a zero field means the default; NULL means all
 *     defaults. Structs that a call fills start with their INIT, too, which gives their size.
 *   - Threads: contexts, models and values that nobody writes may be shared between threads. A
 *     session runs one request at a time; clg_session_clone makes one for another thread.
 *     clg_session_cancel may be called from any thread.
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
#define CLG_API /* functions only: these need no dllimport */
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

/* ---- version --------------------------------------------------------------------------------- */

#define CLG_VERSION_MAJOR 0
#define CLG_VERSION_MINOR 1
#define CLG_VERSION_PATCH 0

/* Returns the version of the library that is running, "0.1.0". Never NULL. */
CLG_API const char *clg_version(void);

/* ---- status ---------------------------------------------------------------------------------- */

typedef enum clg_status {
    CLG_OK = 0,
    CLG_ERROR_INVALID_ARGUMENT = -1,      /* an argument of the call is invalid */
    CLG_ERROR_INVALID_MODEL = -2,         /* the file or graph breaks ONNX's rules */
    CLG_ERROR_UNSUPPORTED_OPERATOR = -3,  /* an operator (or version) that clgraph does not have */
    CLG_ERROR_UNSUPPORTED_ATTRIBUTE = -4, /* the operator is there, this attribute value is not */
    CLG_ERROR_UNSUPPORTED_DTYPE = -5,     /* the operator is there, this element type is not */
    CLG_ERROR_SHAPE = -6,                 /* shapes, ranks or values of shape inputs do not match */
    CLG_ERROR_DATA = -7,       /* a value is out of range at run time: an index in Gather */
    CLG_ERROR_NOT_FOUND = -8,  /* a name that the model, cache or folder does not have */
    CLG_ERROR_NO_OPENCL = -9,  /* no OpenCL loader or no platform on this machine */
    CLG_ERROR_NO_DEVICE = -10, /* OpenCL is there, but no device matches the selector */
    CLG_ERROR_UNSUPPORTED_DEVICE = -11, /* the device lacks a feature that is needed */
    CLG_ERROR_OUT_OF_HOST_MEMORY = -12,
    CLG_ERROR_OUT_OF_DEVICE_MEMORY = -13,
    CLG_ERROR_KERNEL_BUILD = -14, /* the driver's compiler rejected a kernel */
    CLG_ERROR_DEVICE_LOST = -15,  /* the device or driver failed: see clg_context_recover */
    CLG_ERROR_IO = -16,           /* a file cannot be read or written */
    CLG_ERROR_CANCELLED = -17,
    CLG_ERROR_BUSY = -18,     /* the session is running another request */
    CLG_ERROR_INTERNAL = -19, /* a bug in clgraph: please report it */
    CLG_ERROR_LIMIT = -20     /* more memory, steps or time than clg_limits allow */
} clg_status;

/* Returns the name of a status, "CLG_ERROR_IO"; "unknown status" for any other value. */
CLG_API const char *clg_status_name(clg_status status);

/* Returns the message of the calling thread's last failed call: what failed, on which node, tensor
 * or device. Never NULL; "" when nothing failed. Valid until the thread's next failing call; calls
 * that succeed do not change it. */
CLG_API const char *clg_last_error(void);

/* Returns what to try after the last error, "" when there is no advice. Same lifetime. */
CLG_API const char *clg_last_hint(void);

/* ---- log and memory -------------------------------------------------------------------------- */

typedef enum clg_log_level {
    CLG_LOG_ERROR = 0,
    CLG_LOG_WARNING = 1,
    CLG_LOG_INFO = 2,
    CLG_LOG_DEBUG = 3
} clg_log_level;

/* Receives a log message, without a trailing newline, valid during the call. */
typedef void (*clg_log_callback)(void *user, clg_log_level level, const char *message);

/* Sends messages up to `level` to `callback`; NULL silences the log (the default). Process-wide;
 * may be set at any time; the callback may be called from any thread, one call at a time. Once this
 * has returned, the previous callback no longer runs. */
CLG_API void clg_set_log(clg_log_callback callback, void *user, clg_log_level level);

/* Memory hooks. `resize(user, NULL, n)` allocates, `resize(user, p, n)` grows or shrinks,
 * `resize(user, p, 0)` frees and returns NULL. Must align as malloc does. Runs on any thread. */
typedef struct clg_allocator {
    void *(*resize)(void *user, void *memory, size_t size_bytes);
    void *user;
} clg_allocator;

/* Sets the process-wide allocator, which is copied; NULL restores malloc. Must be called while no
 * object of the library exists (else INVALID_ARGUMENT) and no other thread calls the library. */
CLG_API CLG_MUST_USE clg_status clg_set_allocator(const clg_allocator *allocator);

/* A token that cancels loading, creating sessions and runs: clgraph/cancel.h; limits of memory and
 * time for models that are not trusted: clgraph/limits.h. */
typedef struct clg_cancel clg_cancel;
typedef struct clg_limits clg_limits;

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

/* Returns the name of a dtype, "float32"; "unknown dtype" for any other value. */
CLG_API const char *clg_dtype_name(clg_dtype dtype);
/* Returns the bytes of one element; 0 for strings and for types of less than a byte. */
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

/* Called when the last reference is released, on the thread that releases it. */
typedef void (*clg_release_callback)(void *user);

/* Creates a tensor in host memory, row-major, filled with zeros. dims: `rank` values >= 0, may be
 * NULL for rank 0; rank 0..CLG_MAX_RANK. Errors: INVALID_ARGUMENT (dtype, rank, negative or
 * overflowing dims). */
CLG_API CLG_MUST_USE clg_status clg_value_create(clg_dtype dtype, size_t rank, const int64_t *dims,
                                                 clg_value **out_value);
/* Creates a tensor over the caller's memory, row-major and not copied, else as clg_value_create.
 * size_bytes: of the memory, at least that of the tensor, else INVALID_ARGUMENT; data may be NULL
 * for no elements. Strings are a char * each, NUL-terminated, UTF-8, NULL for the
 * empty one; they stay on the host. `release(user)` (may be NULL) runs when the last reference is
 * gone, not when this call fails. */
CLG_API CLG_MUST_USE clg_status clg_value_wrap(clg_dtype dtype, size_t rank, const int64_t *dims,
                                               void *data, size_t size_bytes,
                                               clg_release_callback release, void *user,
                                               clg_value **out_value);
/* Creates a tensor in the memory of the context's device; elements are undefined until written.
 * Errors: as clg_value_create (strings are INVALID_ARGUMENT), OUT_OF_DEVICE_MEMORY. */
CLG_API CLG_MUST_USE clg_status clg_value_create_device(clg_context *context, clg_dtype dtype,
                                                        size_t rank, const int64_t *dims,
                                                        clg_value **out_value);
/* Copies data into a tensor on the host or a device; blocks until done. size_bytes must be that of
 * the tensor; data may be NULL when it is 0. Errors: INVALID_ARGUMENT (another size, a tensor of
 * strings, not a tensor), DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_write(clg_value *value, const void *data,
                                                size_t size_bytes);
/* Copies the elements of a tensor to data; otherwise as clg_value_write. */
CLG_API CLG_MUST_USE clg_status clg_value_read(const clg_value *value, void *data,
                                               size_t size_bytes);
/* Returns a host copy of any value; a new reference if it is on the host. Errors: DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_value_to_host(clg_value *value, clg_value **out_value);

/* Creates a sequence that keeps references to its items: tensors of `dtype`, or sequences,
 * optionals and maps of such. dtype CLG_DTYPE_NONE means that of the first item. items may be NULL
 * when n_items is 0. Errors: INVALID_ARGUMENT (an item NULL or of another dtype, nested more than
 * 64 deep). */
CLG_API CLG_MUST_USE clg_status clg_value_create_sequence(clg_dtype dtype, size_t n_items,
                                                          clg_value *const *items,
                                                          clg_value **out_value);
/* Creates an optional that keeps a reference to item, or is empty if item is NULL; otherwise as
 * clg_value_create_sequence. */
CLG_API CLG_MUST_USE clg_status clg_value_create_optional(clg_dtype dtype, clg_value *item,
                                                          clg_value **out_value);
/* Returns the number of items: 0 or 1 for an optional, 0 for tensors and maps. */
CLG_API size_t clg_value_n_items(const clg_value *value);
/* Returns item i of a sequence or optional, borrowed; NULL when i is out of range. */
CLG_API clg_value *clg_value_item(const clg_value *value, size_t i);
/* Creates a map from keys, a tensor [n] of int64 or strings, to values, a tensor [n] of any dtype;
 * it keeps references to both. The caller ensures that no key occurs twice. scikit-learn's
 * classifiers give a sequence of maps from classes to probabilities, one per row. Errors:
 * INVALID_ARGUMENT (another dtype of keys, other shapes). */
CLG_API CLG_MUST_USE clg_status clg_value_create_map(clg_value *keys, clg_value *values,
                                                     clg_value **out_value);
/* Return the tensors of keys and of values of a map, borrowed; NULL if the value is not a map. Maps
 * of one output may have a common tensor of keys. */
CLG_API clg_value *clg_value_map_keys(const clg_value *value);
CLG_API clg_value *clg_value_map_values(const clg_value *value);

/* Return kind, dtype and rank. A sequence, optional or map has rank 0 and the dtype of its tensors
 * (a map: of its values). NULL counts as a tensor of rank 0 without dtype. */
CLG_API clg_value_kind clg_value_get_kind(const clg_value *value);
CLG_API clg_dtype clg_value_dtype(const clg_value *value);
CLG_API size_t clg_value_rank(const clg_value *value);
/* Returns an array of clg_value_rank dimensions, borrowed; never NULL. */
CLG_API const int64_t *clg_value_dims(const clg_value *value);
/* Return the number of elements of a tensor (1 for rank 0) and their bytes; 0 for other values. */
CLG_API int64_t clg_value_n_elements(const clg_value *value);
CLG_API size_t clg_value_size_bytes(const clg_value *value);
/* Returns the host memory, row-major; NULL on a device. Write only while no run uses the value. */
CLG_API void *clg_value_data(const clg_value *value);
/* Add and remove a reference, from any thread; both accept NULL. retain returns its argument. */
CLG_API clg_value *clg_value_retain(clg_value *value);
CLG_API void clg_value_free(clg_value *value);

/* ---- devices --------------------------------------------------------------------------------- */

typedef enum clg_device_kind {
    CLG_DEVICE_CPU = 0,
    CLG_DEVICE_INTEGRATED_GPU = 1,
    CLG_DEVICE_DISCRETE_GPU = 2,
    CLG_DEVICE_ACCELERATOR = 3
} clg_device_kind;

typedef enum clg_kernel_class {
    CLG_KERNELS_AUTO = 0, /* simd on CPU devices, simt on the rest */
    CLG_KERNELS_SIMD = 1, /* explicit vectors, one work-item per group */
    CLG_KERNELS_SIMT = 2  /* work-group tiles in local memory */
} clg_kernel_class;

/* One OpenCL device. Strings are never NULL and live as long as their list or context. */
typedef struct clg_device_info {
    size_t struct_size;
    const char *selector;       /* platform and device index, "0:0", as cltool devices prints it */
    const char *id;             /* stable between runs of the program: "id:..." */
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
    /* Found by building and running probes; all false until the device was probed (clg_device_probe
     * in inspect.h, or a context on it). */
    bool probed, fp16, fp64, subgroups, int8_dot, matrix;
    bool is_default;         /* the one that "auto" selects */
    const char *auto_reason; /* why auto selects it, or why it never does */
} clg_device_info;

/* Lists every OpenCL device of the machine, usable or not, in platform order. Errors: NO_OPENCL. */
CLG_API CLG_MUST_USE clg_status clg_device_list(clg_device_info **out_devices,
                                                size_t *out_n_devices);
/* Frees the array of clg_device_list, of which devices is the first element; accepts NULL. */
CLG_API void clg_device_list_free(clg_device_info *devices, size_t n_devices);

/* Whether kernels are tested before use: the implementation chosen for a node must first solve a
 * small problem as the host does. The cache keeps the result. One that fails is logged and replaced
 * by another on that device and driver; if none is right, runs fail with UNSUPPORTED_DEVICE. */
typedef enum clg_selftest {
    CLG_SELFTEST_DEFAULT = 0, /* as $CLG_SELFTEST says: "off", else on */
    CLG_SELFTEST_ON = 1,
    CLG_SELFTEST_OFF = 2 /* also ignores the results of earlier tests */
} clg_selftest;

typedef struct clg_context_options {
    size_t struct_size;
    const char *fallback; /* selector used when nothing matches; NULL: none */
    /* Folder of the cache of compiled programs; NULL: $CLG_CACHE_DIR, else the user's cache folder;
     * "" keeps everything in memory. */
    const char *cache_dir;
    uint32_t cpu_threads; /* compute units of a CPU device to use; 0: all */
    bool profiling;       /* queues record time stamps; needed by clg_session_profile */
    clg_selftest selftest;
    /* The program clgraph-compile, in which kernels are compiled first: a driver's compiler that
     * crashes, hangs or takes all memory ends that process and not this one. NULL:
     * $CLG_COMPILE_HELPER, else beside the library; "off": none; else an absolute path. Never
     * started from a setuid program. */
    const char *compile_helper;
    uint32_t compile_limit_s;   /* seconds for a build; 0: 60. CLBlast's may take 5 times that */
    uint32_t compile_limit_mib; /* resident MiB that it may take; 0: 4096 */
    /* Longest time of a launch, which systems limit where a GPU drives a display: longer ones are
     * divided, where possible. 0: 500 on GPUs, unlimited elsewhere; UINT32_MAX: unlimited. */
    uint32_t max_launch_ms;
} clg_context_options;
#define CLG_CONTEXT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_context_options), NULL, NULL, 0, false, CLG_SELFTEST_DEFAULT, NULL, 0, 0, 0     \
    }

/* Opens the best device that matches selector. A selector, case-insensitive, is one of these (the
 * first that fits): auto, gpu, cpu, all; id:...; a platform's vendor (nvidia, amd, intel, pocl,
 * mesa); P:D as in clg_device_info; the name of a device or platform, or a part of one. WORD#N is
 * the N-th match of WORD, from 0. NULL means $CLG_DEVICE, else auto. options may be NULL.
 * With an empty cache this compiles small probes. Errors: NO_OPENCL, NO_DEVICE (the message lists
 * the devices), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_create(const char *selector,
                                                   const clg_context_options *options,
                                                   clg_context **out_context);
/* Returns the device, probed; borrowed, lives as long as the context. NULL for NULL. */
CLG_API const clg_device_info *clg_context_device(const clg_context *context);
/* Opens the device again, in another OpenCL context, if it was lost (DEVICE_LOST: a reset of the
 * driver, suspend); does nothing if it answers. Sessions, clones and streams are then rebuilt at
 * their next run or preparation. Host inputs, links and bound host values stay set. What was on the
 * device is lost: device values, outputs, mapped inputs, what a link carried (docs/errors.md). Any
 * thread, also during runs. Errors: NO_DEVICE (it is gone; may be called again), INVALID_ARGUMENT
 * (a context of clg_context_create_opencl), those of clg_context_create. */
CLG_API CLG_MUST_USE clg_status clg_context_recover(clg_context *context);
CLG_API void clg_context_free(clg_context *context);

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct clg_model_options {
    size_t struct_size;
    /* Load a model without its external data, to inspect it; sessions fail with NOT_FOUND. */
    bool allow_external_data_missing;
    /* Load despite unsupported operators, attributes or dtypes: sessions fail as loading would. */
    bool allow_unsupported;
    /* Read the model's files into host memory instead of mapping them. A mapped file that another
     * process truncates while the model lives ends this process (SIGBUS on POSIX systems); a file
     * that was read may change or be removed. Costs memory of the files' size. */
    bool read_files;
    clg_cancel *cancel;       /* cancels loading; may be NULL */
    const clg_limits *limits; /* of loading; copied; NULL: none */
} clg_model_options;
#define CLG_MODEL_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_model_options), false, false, false, NULL, NULL                                 \
    }

/* One input or output of a model. dims[i] < 0: chosen at run time; dim_names[i] is then its symbol
 * or "". Outputs have the dimensions that are known without a run. */
typedef struct clg_port {
    const char *name;
    clg_value_kind kind;
    clg_dtype dtype; /* CLG_DTYPE_NONE: not known */
    int rank;        /* -1: any */
    int64_t dims[CLG_MAX_RANK];
    const char *dim_names[CLG_MAX_RANK];
    clg_dtype key_dtype; /* of the maps that it is or holds; CLG_DTYPE_NONE: there are none */
} clg_port;

/* Loads an ONNX file, which is mapped and must not change while the model lives, unless
 * options->read_files is set. External data is read from regular files only, relative to the model
 * and never outside its folder, links resolved. options may be NULL. Errors: IO,
 * INVALID_MODEL, SHAPE and DATA (impossible shapes and constants), UNSUPPORTED_OPERATOR (all
 * missing operators, with their nodes), UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_DTYPE, CANCELLED. */
CLG_API CLG_MUST_USE clg_status clg_model_load_file(const char *path,
                                                    const clg_model_options *options,
                                                    clg_model **out_model);
/* As clg_model_load_file, from memory, which is copied and can have no external data. */
CLG_API CLG_MUST_USE clg_status clg_model_load_memory(const void *data, size_t size_bytes,
                                                      const clg_model_options *options,
                                                      clg_model **out_model);
CLG_API void clg_model_free(clg_model *model);
CLG_API size_t clg_model_n_inputs(const clg_model *model);
CLG_API size_t clg_model_n_outputs(const clg_model *model);
/* Returns a port in the model's order; borrowed from the model. NULL when index is out of range. */
CLG_API const clg_port *clg_model_input(const clg_model *model, size_t index);
CLG_API const clg_port *clg_model_output(const clg_model *model, size_t index);

/* ---- sessions -------------------------------------------------------------------------------- */

/* Called repeatedly by calls that can take a second, on the calling thread. `done` of `total` steps
 * of `what` ("compiling kernels") are complete. Returning false cancels the call, which then fails
 * with CLG_ERROR_CANCELLED. */
typedef bool (*clg_progress_callback)(void *user, const char *what, size_t done, size_t total);

/* How a model's float32 values are stored between nodes. Its inputs and outputs keep their dtypes,
 * and arithmetic is float32 in both. With fp16, GEMM-like operators (Conv, Gemm, MatMul, Attention)
 * and cheap operators after them read and write float16, their weights too; what would lose too
 * much precision stays float32. Values beyond 65504 overflow. */
typedef enum clg_precision {
    CLG_PRECISION_FP32 = 0,
    CLG_PRECISION_FP16 = 1,
    CLG_PRECISION_AUTO = 2 /* FP16 on GPUs where probes found fp16 arithmetic, else FP32 */
} clg_precision;

typedef struct clg_session_options {
    size_t struct_size;
    clg_kernel_class kernels; /* which kernels; default: the device's class */
    bool no_blas;             /* never use CLBlast */
    /* Planning fails with UNSUPPORTED_OPERATOR if an operator with numeric inputs and outputs would
     * be computed on the host for lack of a kernel (LabelEncoder, TfIdfVectorizer). Strings,
     * control flow and shape arithmetic are allowed on the host. */
    bool strict;
    /* Names of graph passes not to run; for an unknown one INVALID_ARGUMENT lists the names. */
    const char *const *disabled_passes;
    size_t n_disabled_passes;
    clg_progress_callback progress; /* while the session is created; may be NULL */
    void *progress_user;
    /* Implementations to use wherever a node has them, the best first; elsewhere cost estimates
     * choose, whatever was measured. For tests and measurements; names as in clg_step_profile. */
    const char *const *preferred_impls;
    size_t n_preferred_impls;
    clg_precision precision;
    /* With FP16: names of nodes that stay in float32; '*' matches any characters or none, '?' one.
     * A fused node has the name shown in plans. */
    const char *const *keep_fp32;
    size_t n_keep_fp32;
    /* The most iterations of loops in a run, not counting short loops that are unrolled: a run with
     * more fails with DATA. 0: ten million. */
    uint64_t max_iterations;
    /* Cancels the creation of the session, and all preparations and runs of it and of its clones
     * and streams; may be NULL. With a token, runs wait where more than 100 ms of estimated work
     * would be in the device's queue. */
    clg_cancel *cancel;
    const clg_limits *limits; /* of the session, its clones and streams; copied; NULL: none */
} clg_session_options;
#define CLG_SESSION_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_session_options), CLG_KERNELS_AUTO, false, false, NULL, 0, NULL, NULL, NULL, 0, \
            CLG_PRECISION_FP32, NULL, 0, 0, NULL, NULL                                             \
    }

/* Optimises the model for the context's device and computes there what depends on constants only.
 * options may be NULL. Sessions of one model, context and equal options share weights, plans and
 * programs. Errors: NOT_FOUND (data of the model was missing), UNSUPPORTED_* (a model loaded with
 * allow_unsupported; a dtype that the device lacks), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY,
 * KERNEL_BUILD, DEVICE_LOST, DATA, CANCELLED. */
CLG_API CLG_MUST_USE clg_status clg_session_create(clg_context *context, clg_model *model,
                                                   const clg_session_options *options,
                                                   clg_session **out_session);
/* Creates another session over the same weights, plans and programs, with its own queue and buffers
 * and nothing set: for another thread. Errors: OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_session_clone(clg_session *session, clg_session **out_session);
/* Cancels a run in progress, waits for it, and frees the session. */
CLG_API void clg_session_free(clg_session *session);
/* Returns FP32 or FP16: the storage a session uses, which is also what AUTO chose. */
CLG_API clg_precision clg_session_precision(const clg_session *session);

/* Calls on a session that is working on another request return BUSY, except clg_session_cancel,
 * clg_session_clone and clg_session_wait. */

/* Prepares a session for inputs of the shapes that are set (clg_session_set_input_shape, or
 * values), so that the first run compiles nothing: plans, compiles, and runs once on zeros. Shapes
 * not set are the declared ones, with free dimensions 1. progress may be NULL. Discards the outputs
 * of the last run. Errors: those of clg_session_create and SHAPE. */
CLG_API CLG_MUST_USE clg_status clg_session_prepare(clg_session *session,
                                                    clg_progress_callback progress, void *user);
/* Sets the shape of an input for clg_session_prepare, clg_session_memory and plans; a value set
 * later takes precedence. Errors: NOT_FOUND, SHAPE (not one that the model declares),
 * INVALID_ARGUMENT (also of a sequence or optional), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_set_input_shape(clg_session *session, const char *name,
                                                            size_t rank, const int64_t *dims);

/* Sets an input by reference: a host or device value; one of another context is copied through the
 * host. It stays set until it is set again; NULL unsets it. Host memory is read by each run. CPU
 * devices read large tensors in place, without a copy, if data is aligned to 128 bytes (as that of
 * clg_value_create is). Sequence and optional inputs take values of their kind. Errors: NOT_FOUND
 * (listing the inputs), SHAPE, UNSUPPORTED_DTYPE, INVALID_ARGUMENT (kind of value), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_set_input(clg_session *session, const char *name,
                                                      clg_value *value);
/* As clg_session_set_input, but copies the caller's row-major data, not strings, of size_bytes
 * bytes, which must be those of the tensor; NULL for no elements. Name, dtype, shape and size are
 * checked before data is read. Errors also: INVALID_ARGUMENT (another size, dims). */
CLG_API CLG_MUST_USE clg_status clg_session_set_input_data(clg_session *session, const char *name,
                                                           clg_dtype dtype, size_t rank,
                                                           const int64_t *dims, const void *data,
                                                           size_t size_bytes);
/* Returns memory of the driver for the caller to fill instead of a copy (pinned where the device
 * has it), of the dtype that the model declares; initially undefined. The pointer is valid until
 * the next run or preparation starts, or the input is set or mapped again. The data stay the input
 * of all runs until it is. Errors: as clg_session_set_input, OUT_OF_DEVICE_MEMORY. */
CLG_API CLG_MUST_USE clg_status clg_session_map_input(clg_session *session, const char *name,
                                                      size_t rank, const int64_t *dims,
                                                      void **out_data);
/* Feeds a run's output to this input of the next run, on the device. The input must be set once,
 * for the first run; setting it again starts over. output NULL unlinks it. Errors: NOT_FOUND,
 * UNSUPPORTED_DTYPE (the two differ), INVALID_ARGUMENT (the output is bound, or feeds another
 * input), BUSY; SHAPE at the next run when the output does not match. */
CLG_API CLG_MUST_USE clg_status clg_session_link(clg_session *session, const char *output,
                                                 const char *input);
/* Writes an output of the next runs into this value (host or device) instead of the session's
 * memory; the session keeps a reference. dtype and shape must be what the run produces (SHAPE, by
 * the run), and it must not overlap the memory of an input or another output (INVALID_ARGUMENT, by
 * the run). NULL unbinds it. Errors: NOT_FOUND, INVALID_ARGUMENT (linked, not a tensor, device
 * memory of another context), UNSUPPORTED_DTYPE (strings), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_bind_output(clg_session *session, const char *name,
                                                        clg_value *value);

/* Runs once with the inputs that are set, and waits. New shapes are planned, and kernels not needed
 * before are compiled, during the call. After a failure no output is available, and the session can
 * run again; after DEVICE_LOST, once clg_context_recover was called. Errors: NOT_FOUND (an input is
 * not set), SHAPE, DATA (an index out of range: the node is named), UNSUPPORTED_DEVICE,
 * UNSUPPORTED_DTYPE, OUT_OF_DEVICE_MEMORY, KERNEL_BUILD, DEVICE_LOST, CANCELLED, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_run(clg_session *session);
/* Starts a run on a thread of the session and returns. clg_session_wait must be called once after
 * each start; until then, input values and bound outputs must not be accessed. Errors: BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_run_async(clg_session *session);
/* Waits for the run that clg_session_run_async started; returns its status, and sets its error
 * message on this thread. INVALID_ARGUMENT when no run was started. */
CLG_API CLG_MUST_USE clg_status clg_session_wait(clg_session *session);
/* Ends the run or preparation in progress with CANCELLED, planning and compiling included, as soon
 * as the device allows: before the next launch. Without one in progress it does nothing. Any
 * thread; accepts NULL. A clg_cancel also ends loading and the creation of sessions. */
CLG_API void clg_session_cancel(clg_session *session);

/* Returns an output of the last run by name, in host memory that later runs do not change; of a
 * bound output, the bound value. Errors: NOT_FOUND (no such output, or no successful run before),
 * OUT_OF_DEVICE_MEMORY, DEVICE_LOST, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_get_output(clg_session *session, const char *name,
                                                       clg_value **out_value);
/* As clg_session_get_output, but refers to the session's device memory, which the next run
 * overwrites. Errors: also UNSUPPORTED_DTYPE (strings, sequences and optionals). */
CLG_API CLG_MUST_USE clg_status clg_session_get_output_device(clg_session *session,
                                                              const char *name,
                                                              clg_value **out_value);
/* Copies an output to the caller's memory, row-major; INVALID_ARGUMENT for another size_bytes. */
CLG_API CLG_MUST_USE clg_status clg_session_get_output_data(clg_session *session, const char *name,
                                                            void *data, size_t size_bytes);

typedef struct clg_memory_estimate {
    size_t struct_size;
    uint64_t weight_bytes;         /* on the device, packed copies included */
    uint64_t slab_bytes;           /* intermediate values */
    uint64_t io_bytes;             /* inputs and outputs */
    uint64_t largest_buffer_bytes; /* the largest of these buffers */
    uint64_t live_bytes; /* intermediate values live at the peak: a lower bound for slabs */
} clg_memory_estimate;
#define CLG_MEMORY_ESTIMATE_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_memory_estimate), 0, 0, 0, 0, 0                                                 \
    }

/* Returns the device memory that the session needs for the shapes that are set, as for
 * clg_session_prepare. Weights are those already on the device: all of them after a run.
 * out_estimate starts with its INIT. Errors: those of planning: SHAPE, UNSUPPORTED_*,
 * OUT_OF_DEVICE_MEMORY, DEVICE_LOST; BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_memory(clg_session *session,
                                                   clg_memory_estimate *out_estimate);

#ifdef __cplusplus
}
#endif

#include <clgraph/builder.h> /* clg_builder */
#include <clgraph/cancel.h>  /* clg_cancel */
#include <clgraph/limits.h>  /* clg_limits */

#endif
