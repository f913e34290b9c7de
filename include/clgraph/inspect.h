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

/* Resolves a selector to devices, best first, as indices into clg_device_list's array; lists
 * ("gpu,cpu") and "all" give several. selector NULL: $CLG_DEVICE, else auto; clg_context_create
 * lists the forms. fallback, used when nothing matches, may be NULL. Freed by clg_indices_free,
 * which accepts NULL. Errors: NO_OPENCL, NO_DEVICE. */
CLG_API CLG_MUST_USE clg_status clg_device_select(const char *selector, const char *fallback,
                                                  size_t **out_indices, size_t *out_n_indices);
CLG_API void clg_indices_free(size_t *indices);
/* Determines fp16, fp64, ... of one device of a list, by compiling and running probes or from the
 * cache, and writes the results into it. Errors: NO_OPENCL, NO_DEVICE (it is gone),
 * UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_device_probe(clg_device_info *device);

typedef struct clg_measurement {
    size_t struct_size;
    double fp32_gflops, fp16_gflops; /* peak of multiply-adds; 0: cannot be measured */
    double memory_gbytes_per_s, upload_gbytes_per_s, download_gbytes_per_s;
    double launch_us; /* enqueue an empty kernel and wait for it */
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
    const char *reason;         /* why there; or why it is not supported */
    const char *const *outputs; /* names of values; "" for an omitted one */
    size_t n_outputs;
} clg_node_info;

/* Lists the nodes of a file, those of subgraphs too, with each one's `supported`: operators may be
 * unsupported. The array and its strings are freed by clg_node_list_free. Errors: IO,
 * INVALID_MODEL, UNSUPPORTED_*: what cannot even be read. */
CLG_API CLG_MUST_USE clg_status clg_model_file_nodes(const char *path, clg_node_info **out_nodes,
                                                     size_t *out_n_nodes);
/* Lists the nodes of a model, with the places that are known without a device. Freed likewise. */
CLG_API CLG_MUST_USE clg_status clg_model_nodes(const clg_model *model, clg_node_info **out_nodes,
                                                size_t *out_n_nodes);
/* Lists where each node of the model runs in this session, for the shapes that are set. Freed
 * likewise. Errors: those of planning, see clg_session_memory. */
CLG_API CLG_MUST_USE clg_status clg_session_nodes(clg_session *session, clg_node_info **out_nodes,
                                                  size_t *out_n_nodes);
/* Frees a list of nodes; accepts NULL. */
CLG_API void clg_node_list_free(clg_node_info *nodes, size_t n_nodes);

/* Returns the model's graph in Graphviz's language; freed by clg_text_free. */
CLG_API CLG_MUST_USE clg_status clg_model_dot(const clg_model *model, char **out_text);

typedef struct clg_shape_override {
    const char *input; /* by name */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
} clg_shape_override;

/* Counts the floating-point operations (two per multiply-add) of one run, without a device. Inputs
 * not named have their declared shapes, with free dimensions 1. Nodes whose shapes are unknown do
 * not count. shapes may be NULL when n_shapes is 0. Errors: NOT_FOUND (an input), SHAPE. */
CLG_API CLG_MUST_USE clg_status clg_model_flops(const clg_model *model,
                                                const clg_shape_override *shapes, size_t n_shapes,
                                                double *out_flops);
/* Estimates the bytes of weights, of intermediate values live at the peak, of inputs and
 * outputs, without a device and before any pass. out_estimate starts with its INIT. Errors: as
 * clg_model_flops. */
CLG_API CLG_MUST_USE clg_status clg_model_memory(const clg_model *model,
                                                 const clg_shape_override *shapes, size_t n_shapes,
                                                 clg_memory_estimate *out_estimate);

/* An operator that clgraph supports: a row of its tables. */
typedef struct clg_operator_info {
    const char *domain, *name, *family;
    int since, until;   /* opset versions; until 0: up to the newest */
    const char *dtypes; /* "T: float32, float16; I: int64" */
    const char *place;  /* "device", "shape arithmetic", ... */
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
 * until clg_session_keep_values. */
typedef struct clg_step_profile {
    const char *node; /* name of the (fused) node */
    const char *op_type;
    const char *kernel;  /* "gemm_simd" */
    double start_us;     /* since the first step's start, device clock */
    double duration_us;  /* of work on the device; CLBlast's kernels together */
    double queued_us;    /* from enqueue to start */
    double flops, bytes; /* of work, 0 when not counted */
    const char *impl;    /* implementation of the node: "winograd_4x4"; all its steps have it */
    /* If there were several: what the node computes, as in clg_context_add_choices, and all
     * implementations, separated by spaces. Else NULL. */
    const char *problem, *impls;
} clg_step_profile;
/* Returns the steps of the last run in order, none before a run; freed by clg_session_profile_free,
 * which accepts NULL. Errors: INVALID_ARGUMENT (a context without profiling), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_profile(clg_session *session,
                                                    clg_step_profile **out_steps,
                                                    size_t *out_n_steps);
CLG_API void clg_session_profile_free(clg_step_profile *steps, size_t n_steps);

/* ---- choice of kernels ----------------------------------------------------------------------- */

/* A node with several implementations uses the one measured to be fastest on this device and
 * driver, else the one that the cost estimates favour. Measured choices (from `cltool tune`) are
 * text: the line "clgraph choices 1", then for each problem a line of implementation, tab and
 * problem.
 *
 * add: takes effect now, for sessions created from now on, and is kept in the cache; of two lines
 * about one problem the last one counts, and implementations that do not exist are skipped.
 * choices: returns all of them; freed by clg_text_free. Any thread. Errors: INVALID_ARGUMENT
 * (invalid text; the message names the line). */
CLG_API CLG_MUST_USE clg_status clg_context_add_choices(clg_context *context, const char *lines);
CLG_API CLG_MUST_USE clg_status clg_context_choices(clg_context *context, char **out_lines);

/* ---- self-tests ------------------------------------------------------------------------------ */

/* One kernel on one small problem. Strings are never NULL. */
typedef struct clg_selftest_case {
    const char *op_type, *problem; /* "Conv", "float32[2,21,13,19] float32[37,21,3,3]" */
    const char *impl, *kernel;     /* "winograd_4x4", "winograd_simd" */
    bool has_choice;               /* one of several implementations of the node */
    bool passed;
    /* The largest error of all elements of the result, relative to the size of the terms that the
     * element is computed from, and the limit. Infinite for NaNs, and where something was written
     * past the end of the result. */
    double worst_error, bound;
    const char *failure; /* why it could not be run, "" otherwise */
} clg_selftest_case;
/* Computes small problems of awkward sizes on the device and compares each element with the
 * host's result: with every implementation where a node has several, with `all` with every
 * kernel that has a reference. The results are then kept in the cache and count from now on, see
 * clg_selftest: a kernel that several problems use passes if all of them are right. kernels:
 * which class, default the device's. progress may be NULL. Freed by clg_selftest_free, which
 * accepts NULL. A wrong kernel is not an error. Errors: OUT_OF_DEVICE_MEMORY, DEVICE_LOST,
 * CANCELLED, INVALID_ARGUMENT. */
CLG_API CLG_MUST_USE clg_status clg_context_selftest(clg_context *context, clg_kernel_class kernels,
                                                     bool all, clg_progress_callback progress,
                                                     void *user, clg_selftest_case **out_cases,
                                                     size_t *out_n_cases);
CLG_API void clg_selftest_free(clg_selftest_case *cases, size_t n_cases);

typedef struct clg_counters {
    size_t struct_size;
    uint64_t programs_compiled; /* by the driver from source, in this context */
    uint64_t programs_loaded;   /* from the cache */
    uint64_t kernels_launched, blas_calls;
    uint64_t plans_made, weights_packed;
    uint64_t device_bytes, device_bytes_peak; /* of buffers that clgraph created: now, at peak */
} clg_counters;
#define CLG_COUNTERS_INIT                                                                          \
    {                                                                                              \
        sizeof(clg_counters), 0, 0, 0, 0, 0, 0, 0, 0                                               \
    }
/* Returns the counters of a context since its creation. Any thread. out_counters starts with its
 * INIT. */
CLG_API CLG_MUST_USE clg_status clg_context_counters(const clg_context *context,
                                                     clg_counters *out_counters);

/* Keeps the values of these node outputs (by value name) in the next runs, for
 * clg_session_get_output. Disables fusion across them, so kernels differ from those of a plain
 * session. n_names 0: keeps all tensors if names is NULL, none with any other pointer. What was
 * set, bound and linked stays. Errors: NOT_FOUND (no such value), those of clg_session_create,
 * BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_keep_values(clg_session *session,
                                                        const char *const *names, size_t n_names);

/* ---- the cache of compiled programs ---------------------------------------------------------- */

/* Returns the folder of the cache. cache_dir, in all of these, NULL: $CLG_CACHE_DIR, else the
 * user's. Several processes may use one folder. The path is freed by clg_text_free. Errors of all:
 * IO, INVALID_ARGUMENT (an empty name). */
CLG_API CLG_MUST_USE clg_status clg_cache_path(const char *cache_dir, char **out_path);
typedef struct clg_cache_entry {
    const char *name, *what;
    uint64_t size_bytes;
    int64_t used_seconds; /* since 1970 */
} clg_cache_entry;
/* Lists the entries; freed by clg_cache_list_free, which accepts NULL. A missing folder has
 * none. */
CLG_API CLG_MUST_USE clg_status clg_cache_list(const char *cache_dir, clg_cache_entry **out_entries,
                                               size_t *out_n_entries);
CLG_API void clg_cache_list_free(clg_cache_entry *entries, size_t n_entries);
/* Removes all entries. out_n_removed may be NULL, here and below. */
CLG_API CLG_MUST_USE clg_status clg_cache_clear(const char *cache_dir, size_t *out_n_removed);
/* Removes the entries whose `what` matches a pattern: '*' matches any characters, '?' one. Records
 * of a crash of a driver's compiler match "*: compiler crash*". */
CLG_API CLG_MUST_USE clg_status clg_cache_remove(const char *cache_dir, const char *pattern,
                                                 size_t *out_n_removed);
/* Removes the least recently used entries beyond max_bytes; 0: the cache's own limit, 256 MiB. */
CLG_API CLG_MUST_USE clg_status clg_cache_prune(const char *cache_dir, uint64_t max_bytes,
                                                size_t *out_n_removed);
/* Writes all entries into one file, and adds the entries of such a file. A damaged file adds
 * nothing: IO. */
CLG_API CLG_MUST_USE clg_status clg_cache_pack(const char *cache_dir, const char *file);
CLG_API CLG_MUST_USE clg_status clg_cache_unpack(const char *cache_dir, const char *file,
                                                 size_t *out_n_entries);

/* ---- values as files ------------------------------------------------------------------------- */

/* Loads a tensor from .npy or .pb (TensorProto), by extension. Errors: IO (also a damaged .npy),
 * INVALID_MODEL (a damaged .pb), UNSUPPORTED_DTYPE, INVALID_ARGUMENT (another extension). */
CLG_API CLG_MUST_USE clg_status clg_value_load(const char *path, clg_value **out_value);
/* As clg_value_load, for a known kind of value: a .pb file holds a SequenceProto, OptionalProto or
 * MapProto without saying which. */
CLG_API CLG_MUST_USE clg_status clg_value_load_kind(const char *path, clg_value_kind kind,
                                                    clg_value **out_value);
/* Saves a tensor, on host or device, to .npy or .pb; written to a temporary file and renamed.
 * Errors: IO, INVALID_ARGUMENT (another extension, not a tensor), UNSUPPORTED_DTYPE (.npy has no
 * such type). */
CLG_API CLG_MUST_USE clg_status clg_value_save(clg_value *value, const char *path);
/* Loads the named tensors of an .npz. names and values are arrays of *out_n, freed by clg_npz_free,
 * which accepts NULL. Errors: IO, UNSUPPORTED_DTYPE. */
CLG_API CLG_MUST_USE clg_status clg_npz_load(const char *path, char ***out_names,
                                             clg_value ***out_values, size_t *out_n);
CLG_API void clg_npz_free(char **names, clg_value **values, size_t n);
/* Saves an .npz, compressed; written to a temporary file and renamed. */
CLG_API CLG_MUST_USE clg_status clg_npz_save(const char *path, const char *const *names,
                                             clg_value *const *values, size_t n);
/* Reads a .npy file larger than memory by rows (steps of the first axis); nothing of it stays in
 * memory. One thread at a time per object. Errors of opening: IO (also a damaged or truncated
 * file), UNSUPPORTED_DTYPE, SHAPE (a scalar). */
typedef struct clg_npy_reader clg_npy_reader;
CLG_API CLG_MUST_USE clg_status clg_npy_reader_open(const char *path, clg_npy_reader **out_reader);
CLG_API void clg_npy_reader_free(clg_npy_reader *reader); /* accepts NULL */
/* Return dtype, rank and dims of the file's tensor, as clg_value_...; dims[0] is the number of
 * rows. NULL reads as no dtype and rank 0. */
CLG_API clg_dtype clg_npy_reader_dtype(const clg_npy_reader *reader);
CLG_API size_t clg_npy_reader_rank(const clg_npy_reader *reader);
CLG_API const int64_t *clg_npy_reader_dims(const clg_npy_reader *reader);
/* Reads rows first_row .. first_row + n_rows - 1, row-major, in any order; size_bytes must be
 * theirs, data may be NULL when it is 0. Errors: INVALID_ARGUMENT (rows that do not exist, another
 * size), IO. */
CLG_API CLG_MUST_USE clg_status clg_npy_reader_read(clg_npy_reader *reader, int64_t first_row,
                                                    size_t n_rows, void *data, size_t size_bytes);
/* Writes a .npy file by rows, any number: to a temporary file, which commit renames to its path.
 * dims[0] is ignored; rank 1 and more. Errors: IO, SHAPE (rank 0), UNSUPPORTED_DTYPE (.npy has no
 * such type), INVALID_ARGUMENT (another size, after commit). */
typedef struct clg_npy_writer clg_npy_writer;
CLG_API CLG_MUST_USE clg_status clg_npy_writer_open(const char *path, clg_dtype dtype, size_t rank,
                                                    const int64_t *dims,
                                                    clg_npy_writer **out_writer);
CLG_API CLG_MUST_USE clg_status clg_npy_writer_append(clg_npy_writer *writer, size_t n_rows,
                                                      const void *data, size_t size_bytes);
CLG_API CLG_MUST_USE clg_status clg_npy_writer_commit(clg_npy_writer *writer);
/* Removes the file if it was not committed. Accepts NULL. */
CLG_API void clg_npy_writer_free(clg_npy_writer *writer);
/* Converts as ONNX Cast between numeric types, on the host. *out_exact (may be NULL) says whether
 * every element kept its value. Errors: UNSUPPORTED_DTYPE (strings, complex numbers),
 * INVALID_ARGUMENT (not a tensor). */
CLG_API CLG_MUST_USE clg_status clg_value_cast(clg_value *value, clg_dtype dtype,
                                               clg_value **out_value, bool *out_exact);
/* Returns element i as a double; any numeric type or bool; host tensors. 0 otherwise. */
CLG_API double clg_value_get_double(const clg_value *value, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
