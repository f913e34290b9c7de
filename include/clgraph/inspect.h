/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions for tools: they probe and measure devices, report where each node runs, plans and
 * profiles, manage the cache of compiled programs, and read and write tensor files. The rules of
 * clgraph.h apply.
 */
#ifndef CLGRAPH_INSPECT_H
#define CLGRAPH_INSPECT_H

#include <clgraph/clgraph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frees text that the library returned; accepts NULL. */
CLG_API void clg_text_free(char *text);

/* ---- devices --------------------------------------------------------------------------------- */

/* Resolves a selector, as described at clg_context_create, to devices: *out_indices are indices
 * into clg_device_list's array, best first. Comma-separated selectors ("gpu,cpu") and "all" give
 * several; a part of a CPU ("cpu/1") gives its device. fallback is the selector to use when nothing
 * matches; it may be NULL. The array is freed by clg_indices_free, which accepts NULL. Errors:
 * NO_OPENCL, NO_DEVICE. */
CLG_API CLG_MUST_USE clg_status clg_device_select(const char *selector, const char *fallback,
                                                  size_t **out_indices, size_t *out_n_indices);
CLG_API void clg_indices_free(size_t *indices);
/* Sets the fields probed, fp16, fp64, subgroups, int8_dot and matrix of one entry of
 * clg_device_list's array: from the cache, else by compiling and running probe kernels. Errors:
 * NO_OPENCL, NO_DEVICE (it is gone), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_device_probe(clg_device_info *device);

/* Counts the results of self-tests of kernels (clg_selftest) that the cache has for a device of
 * clg_device_list, with this driver and version of the library: kernels that are right, and wrong
 * ones, which are not used. Both are 0 as long as nothing was tested. Opens no device and takes
 * microseconds. cache_dir: as in clg_context_options. Errors: NO_OPENCL, NO_DEVICE (it is gone). */
CLG_API CLG_MUST_USE clg_status clg_device_selftests(const clg_device_info *device,
                                                     const char *cache_dir, size_t *out_n_passed,
                                                     size_t *out_n_failed);

/* Measured peak performance of a device. */
typedef struct clg_measurement {
    size_t struct_size;
    double fp32_gflops, fp16_gflops; /* peak of multiply-adds, two flops each; 0: unknown */
    double memory_gbytes_per_s, upload_gbytes_per_s, download_gbytes_per_s;
    double launch_us; /* time to enqueue an empty kernel and wait for it */
} clg_measurement;
#define CLG_MEASUREMENT_INIT                                                                       \
    {                                                                                              \
        sizeof(clg_measurement), 0, 0, 0, 0, 0, 0                                                  \
    }
/* Measures the device's peak performance, in about a second. out_measurement starts with its INIT.
 * Errors: OUT_OF_DEVICE_MEMORY, KERNEL_BUILD, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_measure(clg_context *context,
                                                    clg_measurement *out_measurement);

/* Reports the state of OpenCL on this machine, as text to paste into a bug report; freed by
 * clg_text_free. A machine without OpenCL is not an error. */
CLG_API CLG_MUST_USE clg_status clg_diagnose(char **out_text);

/* ---- models ---------------------------------------------------------------------------------- */

/* Properties of a model. Strings are borrowed from the model, never NULL. */
typedef struct clg_model_info {
    size_t struct_size;
    int64_t ir_version;
    int64_t opset; /* of the default domain */
    const char *producer, *graph_name;
    size_t n_nodes;
    int64_t n_parameters;     /* elements of float constants */
    uint64_t parameter_bytes; /* of all constants */
    /* Why sessions refuse the model (loaded with allow_unsupported); "" when they do not. */
    const char *unsupported;
    /* The missing file of constants (allow_external_data_missing); "" when none is. */
    const char *missing_data;
} clg_model_info;
#define CLG_MODEL_INFO_INIT                                                                        \
    {                                                                                              \
        sizeof(clg_model_info), 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL                              \
    }
/* Reports a model's properties; out_info starts with its INIT. */
CLG_API CLG_MUST_USE clg_status clg_model_get_info(const clg_model *model,
                                                   clg_model_info *out_info);

/* Where a node is computed. */
typedef enum clg_place {
    CLG_PLACE_DEVICE = 0, /* kernels */
    CLG_PLACE_LOAD = 1,   /* depends on constants only: computed once at load, on the device */
    CLG_PLACE_SHAPE = 2,  /* arithmetic on shapes and other small known values, during planning */
    CLG_PLACE_VIEW = 3,   /* no data moves: another view of the same memory */
    CLG_PLACE_HOST = 4,   /* inherently on the host: strings, control flow */
    CLG_PLACE_FUSED = 5   /* part of another node's kernel, or removed by a pass */
} clg_place;
/* Returns the name of a place, "device"; "unknown place" for any other value. */
CLG_API const char *clg_place_name(clg_place place);

/* One node of the model. */
typedef struct clg_node_info {
    const char *name; /* that of its first output if it has none */
    const char *domain, *op_type;
    int64_t opset;
    bool supported;
    clg_place place;            /* valid in a session's list */
    const char *reason;         /* for `place`, or why it is unsupported */
    const char *const *outputs; /* names of values; "" for an omitted one */
    size_t n_outputs;
    const char *const *inputs; /* as outputs; not what its subgraphs capture */
    size_t n_inputs;
} clg_node_info;

/* Lists the nodes of an ONNX file, including those of subgraphs. Unsupported operators are no
 * error: `supported` is false and `reason` says why. The array and its strings are freed by
 * clg_node_list_free. Errors: IO, INVALID_MODEL, UNSUPPORTED_* (the file cannot be parsed at all).
 */
CLG_API CLG_MUST_USE clg_status clg_model_file_nodes(const char *path, clg_node_info **out_nodes,
                                                     size_t *out_n_nodes);
/* Lists the nodes of a model. `place` is what can be decided without a device. Freed by
 * clg_node_list_free. */
CLG_API CLG_MUST_USE clg_status clg_model_nodes(const clg_model *model, clg_node_info **out_nodes,
                                                size_t *out_n_nodes);
/* Lists the nodes of the session's model with the place where each is computed, for the input
 * shapes that are set. Freed by clg_node_list_free. Errors: those of clg_session_memory. */
CLG_API CLG_MUST_USE clg_status clg_session_nodes(clg_session *session, clg_node_info **out_nodes,
                                                  size_t *out_n_nodes);
/* Frees a list of nodes; accepts NULL. */
CLG_API void clg_node_list_free(clg_node_info *nodes, size_t n_nodes);

/* Returns the model's graph in Graphviz's language; freed by clg_text_free. */
CLG_API CLG_MUST_USE clg_status clg_model_dot(const clg_model *model, char **out_text);

/* A shape for one input, in place of the declared one. */
typedef struct clg_shape_override {
    const char *input; /* by name */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
} clg_shape_override;

/* Counts the floating-point operations of one run (two per multiply-add), without a device. shapes
 * sets the shapes of inputs; it may be NULL when n_shapes is 0. Other inputs have their declared
 * shapes, with free dimensions 1. Nodes whose shapes are unknown count as 0. Errors: NOT_FOUND (an
 * input), SHAPE. */
CLG_API CLG_MUST_USE clg_status clg_model_flops(const clg_model *model,
                                                const clg_shape_override *shapes, size_t n_shapes,
                                                double *out_flops);
/* Estimates the bytes of weights, of inputs and outputs, and of the intermediate values that are
 * live at the same time at the peak; for the graph as loaded, without a device or any optimisation.
 * out_estimate starts with its INIT. shapes and errors: as in clg_model_flops. */
CLG_API CLG_MUST_USE clg_status clg_model_memory(const clg_model *model,
                                                 const clg_shape_override *shapes, size_t n_shapes,
                                                 clg_memory_estimate *out_estimate);

/* Estimates of one node. */
typedef struct clg_node_estimate {
    double flops;             /* as clg_model_flops counts them; 0 where a shape is not known */
    int64_t n_parameters;     /* elements of the float constants that it reads */
    uint64_t parameter_bytes; /* of all constants that it reads */
    /* Dtypes and shapes of its outputs: rank -1 or a dimension of -1 where it depends on data.
     * Names are borrowed from the model, "" for an omitted output; dim_names are "". */
    const clg_port *outputs;
    size_t n_outputs;
} clg_node_estimate;
/* Estimates each node of a model, in the order of clg_model_nodes, for the graph as loaded and
 * without a device. The array is freed by clg_node_estimate_list_free; the model must outlive it.
 * shapes and errors: as in clg_model_flops. */
CLG_API CLG_MUST_USE clg_status clg_model_node_estimates(const clg_model *model,
                                                         const clg_shape_override *shapes,
                                                         size_t n_shapes,
                                                         clg_node_estimate **out_estimates,
                                                         size_t *out_n_estimates);
/* Frees a list of estimates; accepts NULL. */
CLG_API void clg_node_estimate_list_free(clg_node_estimate *estimates, size_t n_estimates);

/* A value that does not carry the batch. */
#define CLG_BATCH_NONE (-1)

typedef struct clg_batch_options {
    size_t struct_size;
    /* For each input of the model, in its order, the axis that is the batch, or CLG_BATCH_NONE.
     * NULL: the first first dimension that is not fixed and has a name, and the dimensions of that
     * name of other inputs; where none has a name, the first dimensions that are not fixed. */
    const int *input_axes;
    /* Shapes of inputs, as in clg_model_flops; the batch is unknown all the same. More is proved if
     * the sizes of images or lengths of texts are known. NULL when n_shapes is 0. */
    const clg_shape_override *shapes;
    size_t n_shapes;
} clg_batch_options;
#define CLG_BATCH_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_batch_options), NULL, NULL, 0                                                   \
    }
/* Proves, operator by operator, that the rows of a batch do not depend on each other: a model may
 * then be run on parts of a batch, on one device or several, and the outputs of the parts joined.
 * Results are those of the whole batch within the differences of docs/numerics.md.
 * out_input_axes and out_output_axes, arrays of clg_model_n_inputs and clg_model_n_outputs
 * integers, may be NULL. Each becomes the axis along which the value of a part is a slice of the
 * whole value, mostly 0 (of an LSTM's state: 1). An output's size along it is the number of rows
 * times a number that does not depend on it. Holds for up to 2^24 rows. CLG_BATCH_NONE: the value
 * is the same for each part. Needs no device. Any thread. Errors: UNSUPPORTED_OPERATOR (an operator
 * mixes rows, or is not known not to; the message names the node and the reason), INVALID_ARGUMENT
 * (no input carries a batch, or an input cannot), NOT_FOUND and SHAPE (shapes), and why sessions
 * refuse the model. */
CLG_API CLG_MUST_USE clg_status clg_model_batch(const clg_model *model,
                                                const clg_batch_options *options,
                                                int *out_input_axes, int *out_output_axes);

/* An operator that clgraph supports, for a range of opset versions. */
typedef struct clg_operator_info {
    const char *domain, *name, *family;
    int since, until;   /* first and last opset version; until 0: no last one */
    const char *dtypes; /* "T: float32, float16; I: int64" */
    const char *place;  /* "device", "shape arithmetic", ... */
    /* "yes": clg_model_gradient passes through it; "zero": its results do not change with small
     * changes of its inputs; else why it cannot. */
    const char *gradient;
} clg_operator_info;
/* Lists all supported operators, by family; freed by clg_operator_list_free, which accepts NULL. */
CLG_API CLG_MUST_USE clg_status clg_operator_list(clg_operator_info **out_operators,
                                                  size_t *out_n_operators);
CLG_API void clg_operator_list_free(clg_operator_info *operators, size_t n_operators);

/* ---- plans and profiles ---------------------------------------------------------------------- */

/* Returns the plan for the shapes that are set as readable text: steps, kernels, slabs, views;
 * freed by clg_text_free. What depends on data of a run that has not happened is missing. Errors:
 * those of planning, see clg_session_memory. */
CLG_API CLG_MUST_USE clg_status clg_session_plan_text(clg_session *session, char **out_text);

/* One step of the last run; needs a context with profiling. Strings live as long as the session, or
 * until clg_session_keep_values, or until it is rebuilt (clg_context_recover). */
typedef struct clg_step_profile {
    const char *node; /* name of the (fused) node */
    const char *op_type;
    const char *kernel;  /* "gemm_simd" */
    double start_us;     /* since the first step's start, device clock */
    double duration_us;  /* of work on the device; CLBlast's kernels together */
    double queued_us;    /* from enqueue to start */
    double flops, bytes; /* operations and memory traffic, estimated; 0: no estimate */
    const char *impl;    /* implementation of the node, "winograd_4x4"; equal in all its steps */
    /* Of a node with several implementations: the problem, as in clg_context_add_choices, and the
     * names of all implementations, separated by spaces. Else NULL. */
    const char *problem, *impls;
} clg_step_profile;
/* Returns the steps of the last run in order, none before a run; freed by clg_session_profile_free,
 * which accepts NULL. Errors: INVALID_ARGUMENT (a context without profiling), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_profile(clg_session *session,
                                                    clg_step_profile **out_steps,
                                                    size_t *out_n_steps);
CLG_API void clg_session_profile_free(clg_step_profile *steps, size_t n_steps);

/* ---- choice of kernels ----------------------------------------------------------------------- */

/* Returns the name of an implementation that an operator has on some device, "winograd_4x4": the
 * `index`-th in alphabetical order, from 0; NULL from their number on. Any thread. */
CLG_API const char *clg_implementation_name(size_t index);
/* Adds measured choices of implementations. A node with several implementations uses the one that
 * was measured to be the fastest for its problem on this device and driver, else the one of the
 * lowest estimated cost. lines, as `cltool tune` writes them: "clgraph choices 1", then one line
 * for each problem, "IMPLEMENTATION<tab>PROBLEM". Of two lines for one problem the last one counts;
 * unknown implementations are skipped. The choices apply to sessions created from now on and are
 * kept in the cache. Any thread. Errors: INVALID_ARGUMENT (invalid text; the message names the
 * line). */
CLG_API CLG_MUST_USE clg_status clg_context_add_choices(clg_context *context, const char *lines);
/* Returns all choices of the context, in that format; freed by clg_text_free. Any thread. */
CLG_API CLG_MUST_USE clg_status clg_context_choices(clg_context *context, char **out_lines);

/* ---- self-tests ------------------------------------------------------------------------------ */

/* One kernel on one small problem. Strings are never NULL. */
typedef struct clg_selftest_case {
    const char *op_type, *problem; /* "Conv", "float32[2,21,13,19] float32[37,21,3,3]" */
    const char *impl, *kernel;     /* "winograd_4x4", "winograd_simd" */
    bool has_choice;               /* impl is one of several implementations of the node */
    bool passed;
    /* The largest error of an element of the result, divided by the magnitude of the terms that it
     * is computed from, and the limit for it. The error is infinite if an element is wrongly NaN or
     * the kernel wrote past the end of the result. */
    double worst_error, bound;
    const char *failure; /* why it could not be run, "" otherwise */
} clg_selftest_case;
/* Tests kernels: computes small problems of odd sizes on the device and compares each element with
 * the host's result. Tests the implementations of operators that have several; with `all`, every
 * kernel that has a host reference. A kernel passes if all its problems are right. The results are
 * kept in the cache and apply from now on, see clg_selftest. kernels: the class to test,
 * CLG_KERNELS_AUTO for the device's. progress may be NULL. *out_cases is freed by
 * clg_selftest_free, which accepts NULL. A wrong kernel is not an error. Errors:
 * OUT_OF_DEVICE_MEMORY, DEVICE_LOST, CANCELLED, INVALID_ARGUMENT. */
CLG_API CLG_MUST_USE clg_status clg_context_selftest(clg_context *context, clg_kernel_class kernels,
                                                     bool all, clg_progress_callback progress,
                                                     void *user, clg_selftest_case **out_cases,
                                                     size_t *out_n_cases);
CLG_API void clg_selftest_free(clg_selftest_case *cases, size_t n_cases);

/* Counters of a context, from its creation on. */
typedef struct clg_counters {
    size_t struct_size;
    uint64_t programs_compiled; /* by the driver from source, in this context */
    uint64_t programs_loaded;   /* from the cache */
    uint64_t kernels_launched, blas_calls;
    uint64_t plans_made, weights_packed;
    uint64_t device_bytes, device_bytes_peak; /* of buffers that clgraph created: now, at peak */
    /* Between memory of the host and of the device, weights included; memory that the device reads
     * in place does not count, memory mapped for the host does. */
    uint64_t bytes_to_device, bytes_from_device;
} clg_counters;
#define CLG_COUNTERS_INIT                                                                          \
    {                                                                                              \
        sizeof(clg_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                         \
    }
/* Returns the counters of a context since its creation. Any thread. out_counters starts with its
 * INIT. */
CLG_API CLG_MUST_USE clg_status clg_context_counters(const clg_context *context,
                                                     clg_counters *out_counters);

/* Makes intermediate values of the next runs available to clg_session_get_output. names are the
 * names of node outputs; with n_names 0, names NULL selects all tensors and any other pointer
 * none. Each call replaces the selection of the last. Nodes are not fused across a selected value,
 * so the kernels may differ from those of other sessions. Inputs, bound outputs and links stay as
 * they are. Errors: NOT_FOUND (no such value), those of clg_session_create, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_keep_values(clg_session *session,
                                                        const char *const *names, size_t n_names);

/* ---- the cache of compiled programs ---------------------------------------------------------- */

/* Returns the path of the cache folder, which several processes may use at a time. In all functions
 * of the cache, cache_dir NULL means $CLG_CACHE_DIR, else the user's cache folder. *out_path is
 * freed by clg_text_free. Errors of all functions of the cache: IO, INVALID_ARGUMENT (cache_dir is
 * ""). */
CLG_API CLG_MUST_USE clg_status clg_cache_path(const char *cache_dir, char **out_path);
/* One entry of the cache: a compiled program or a record. name identifies its file in the folder;
 * what describes the device and the program or record. */
typedef struct clg_cache_entry {
    const char *name, *what;
    uint64_t size_bytes;
    int64_t used_seconds; /* time of last use, in seconds since 1970 */
} clg_cache_entry;
/* Lists the entries: none if the folder does not exist. The array is freed by clg_cache_list_free,
 * which accepts NULL. */
CLG_API CLG_MUST_USE clg_status clg_cache_list(const char *cache_dir, clg_cache_entry **out_entries,
                                               size_t *out_n_entries);
CLG_API void clg_cache_list_free(clg_cache_entry *entries, size_t n_entries);
/* Removes all entries. *out_n_removed is their number; out_n_removed may be NULL, also in
 * clg_cache_remove and clg_cache_prune. */
CLG_API CLG_MUST_USE clg_status clg_cache_clear(const char *cache_dir, size_t *out_n_removed);
/* Removes the entries whose `what` matches a pattern: '*' matches any characters, '?' one. Records
 * of a crash of a driver's compiler match "*: compiler crash*". */
CLG_API CLG_MUST_USE clg_status clg_cache_remove(const char *cache_dir, const char *pattern,
                                                 size_t *out_n_removed);
/* Removes the least recently used entries until at most max_bytes remain; 0 means 256 MiB, the
 * limit that the library itself keeps. */
CLG_API CLG_MUST_USE clg_status clg_cache_prune(const char *cache_dir, uint64_t max_bytes,
                                                size_t *out_n_removed);
/* Writes all entries of the cache into one file. */
CLG_API CLG_MUST_USE clg_status clg_cache_pack(const char *cache_dir, const char *file);
/* Adds the entries of a file that clg_cache_pack wrote. *out_n_entries, which may be NULL, is the
 * number of entries added. The whole file is verified first: if it is damaged, nothing is added and
 * IO is returned. */
CLG_API CLG_MUST_USE clg_status clg_cache_unpack(const char *cache_dir, const char *file,
                                                 size_t *out_n_entries);

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns whether a pattern matches a whole name, as in all options that take patterns of names:
 * '*' matches any characters or none, '?' one byte. false for NULL. Any thread. */
CLG_API bool clg_name_matches(const char *pattern, const char *name);

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes size_bytes bytes to a file, as all functions here write files: to a locked temporary file
 * PATH.tmp.N beside it, which is renamed at the end, so that PATH is the old file or the complete
 * new one; a temporary file of a process that has died is removed by the next writer of PATH.
 * Symbolic links are followed: the file at their end is replaced. A device or pipe is written in
 * place; a pipe waits for its reader. data may be NULL when size_bytes is 0. Errors: IO. */
CLG_API CLG_MUST_USE clg_status clg_file_write(const char *path, const void *data,
                                               size_t size_bytes);

/* ---- values as files ------------------------------------------------------------------------- */

/* Loads a tensor from .npy or .pb (TensorProto), by extension. Errors: IO (also a damaged .npy),
 * INVALID_MODEL (a damaged .pb), UNSUPPORTED_DTYPE, INVALID_ARGUMENT (another extension). */
CLG_API CLG_MUST_USE clg_status clg_value_load(const char *path, clg_value **out_value);
/* As clg_value_load, for a value of the given kind. A .pb file does not say whether it holds a
 * TensorProto, SequenceProto, OptionalProto or MapProto. */
CLG_API CLG_MUST_USE clg_status clg_value_load_kind(const char *path, clg_value_kind kind,
                                                    clg_value **out_value);
/* Saves a tensor, on host or device, to .npy or .pb; written to a temporary file and renamed.
 * Errors: IO, INVALID_ARGUMENT (another extension, not a tensor), UNSUPPORTED_DTYPE (.npy has no
 * such type). */
CLG_API CLG_MUST_USE clg_status clg_value_save(clg_value *value, const char *path);
/* Reads the arrays of a .npz one at a time. Arrays are compressed: look at an array's header before
 * it is unpacked to memory of that size. The file is mapped, and must not change before the reader
 * is freed. One thread at a time per reader. */
typedef struct clg_npz_reader clg_npz_reader;
/* Errors: IO (also a damaged file). */
CLG_API CLG_MUST_USE clg_status clg_npz_reader_open(const char *path, clg_npz_reader **out_reader);
CLG_API void clg_npz_reader_free(clg_npz_reader *reader);             /* accepts NULL */
CLG_API size_t clg_npz_reader_n_arrays(const clg_npz_reader *reader); /* 0 for NULL */
/* Returns the name of array `index`, borrowed from the reader; NULL when index is out of range. */
CLG_API const char *clg_npz_reader_name(const clg_npz_reader *reader, size_t index);
/* Reads dtype, rank and dimensions of array `index` without unpacking it; the file's directory
 * declares the size that follows from them. Errors: IO, UNSUPPORTED_DTYPE, INVALID_ARGUMENT (no
 * such array). */
CLG_API CLG_MUST_USE clg_status clg_npz_reader_header(const clg_npz_reader *reader, size_t index,
                                                      clg_dtype *out_dtype, size_t *out_rank,
                                                      int64_t out_dims[CLG_MAX_RANK]);
/* Unpacks array `index` into a new value. Errors: as above. */
CLG_API CLG_MUST_USE clg_status clg_npz_reader_read(const clg_npz_reader *reader, size_t index,
                                                    clg_value **out_value);
/* Loads all tensors of an .npz with their names, however large they are. *out_names and *out_values
 * are arrays of *out_n elements, both freed by clg_npz_free, which accepts NULL. Errors: IO,
 * UNSUPPORTED_DTYPE. */
CLG_API CLG_MUST_USE clg_status clg_npz_load(const char *path, char ***out_names,
                                             clg_value ***out_values, size_t *out_n);
CLG_API void clg_npz_free(char **names, clg_value **values, size_t n);
/* Saves n named tensors to a compressed .npz, which is written to a temporary file and renamed. */
CLG_API CLG_MUST_USE clg_status clg_npz_save(const char *path, const char *const *names,
                                             clg_value *const *values, size_t n);
/* Reads a .npy file by rows (indices of the first axis) without keeping it in memory, so it may be
 * larger than memory. One thread at a time per reader. */
typedef struct clg_npy_reader clg_npy_reader;
/* Opens a file. Errors: IO (also a damaged or truncated file), UNSUPPORTED_DTYPE, SHAPE (a scalar).
 */
CLG_API CLG_MUST_USE clg_status clg_npy_reader_open(const char *path, clg_npy_reader **out_reader);
CLG_API void clg_npy_reader_free(clg_npy_reader *reader); /* accepts NULL */
/* Return the dtype, rank and dimensions of the file's tensor; dims[0] is the number of rows, and
 * the array is borrowed. For a NULL reader: CLG_DTYPE_NONE and rank 0. */
CLG_API clg_dtype clg_npy_reader_dtype(const clg_npy_reader *reader);
CLG_API size_t clg_npy_reader_rank(const clg_npy_reader *reader);
CLG_API const int64_t *clg_npy_reader_dims(const clg_npy_reader *reader);
/* Reads rows first_row .. first_row + n_rows - 1 into data, row-major. Calls may read rows in any
 * order. size_bytes must be the bytes of these rows; data may be NULL when it is 0. Errors:
 * INVALID_ARGUMENT (rows that do not exist, another size), IO. */
CLG_API CLG_MUST_USE clg_status clg_npy_reader_read(clg_npy_reader *reader, int64_t first_row,
                                                    size_t n_rows, void *data, size_t size_bytes);
/* Writes a .npy file of any number of rows, in parts, to a temporary file. */
typedef struct clg_npy_writer clg_npy_writer;
/* Opens a writer. dims[1] and up are the dimensions of a row; dims[0] is ignored. Errors: IO, SHAPE
 * (rank 0), UNSUPPORTED_DTYPE (.npy has no such type). */
CLG_API CLG_MUST_USE clg_status clg_npy_writer_open(const char *path, clg_dtype dtype, size_t rank,
                                                    const int64_t *dims,
                                                    clg_npy_writer **out_writer);
/* Opens a writer for the rows from row first_row on of a file of dims[0] rows. Other writers, also
 * of other processes and at the same time, write the other rows; each writes the same header.
 * There is no temporary file: commit only closes the file, and free keeps what was written, so
 * give the file its name when all writers have committed. Appending more rows than there are after
 * first_row is INVALID_ARGUMENT. Errors: as clg_npy_writer_open; INVALID_ARGUMENT (first_row is
 * not 0 to dims[0], or the file would be larger than INT64_MAX bytes). */
CLG_API CLG_MUST_USE clg_status clg_npy_writer_open_part(const char *path, clg_dtype dtype,
                                                         size_t rank, const int64_t *dims,
                                                         int64_t first_row,
                                                         clg_npy_writer **out_writer);
/* Appends rows. size_bytes must be the bytes of n_rows rows. Errors: IO, INVALID_ARGUMENT (another
 * size, after commit). */
CLG_API CLG_MUST_USE clg_status clg_npy_writer_append(clg_npy_writer *writer, size_t n_rows,
                                                      const void *data, size_t size_bytes);
/* Waits until the rows appended so far are stored, so that they outlast a failure of power or of
 * the machine: what is recorded of them afterwards holds. Errors: IO, INVALID_ARGUMENT (after
 * commit). */
CLG_API CLG_MUST_USE clg_status clg_npy_writer_flush(clg_npy_writer *writer);
/* Completes the file and renames it to its path. Errors: IO, INVALID_ARGUMENT (a second commit). */
CLG_API CLG_MUST_USE clg_status clg_npy_writer_commit(clg_npy_writer *writer);
/* Frees the writer, and removes the temporary file if it was not committed. Accepts NULL. */
CLG_API void clg_npy_writer_free(clg_npy_writer *writer);
/* Converts a tensor to another numeric type on the host, as ONNX Cast does. *out_exact, which may
 * be NULL, becomes true if no element changed its value. Errors: UNSUPPORTED_DTYPE (strings,
 * complex numbers), INVALID_ARGUMENT (not a tensor). */
CLG_API CLG_MUST_USE clg_status clg_value_cast(clg_value *value, clg_dtype dtype,
                                               clg_value **out_value, bool *out_exact);
/* Returns element i of a host tensor of any numeric type or bool as a double; 0 for other values,
 * and if i is out of range. */
CLG_API double clg_value_get_double(const clg_value *value, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
