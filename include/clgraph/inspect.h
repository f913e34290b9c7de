/* SPDX-License-Identifier: Apache-2.0
 *
 * What tools need beyond prediction: probing and measuring devices, where each node runs, plans, profiles,
 * the store of compiled programs, tensor files. The rules of clgraph.h hold here too.
 */
#ifndef CLGRAPH_INSPECT_H
#define CLGRAPH_INSPECT_H

#include <clgraph/clgraph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text that the library made for the caller; accepts NULL. */
CLG_API void clg_text_free(char *text);

/* ---- devices ------------------------------------------------------------------------------------- */

/* The devices that a selector means, best first, as indices into clg_device_list's array; lists
 * ("gpu,cpu") and "all" give several. selector NULL: $CLG_DEVICE, else auto; see clg_context_create for the
 * words. fallback, which serves when nothing matches, may be NULL. Freed by clg_indices_free, which accepts NULL.
 * Errors: NO_OPENCL, NO_DEVICE. */
CLG_API CLG_MUST_USE clg_status clg_device_select(const char *selector, const char *fallback,
                                                  size_t **out_indices, size_t *out_n_indices);
CLG_API void clg_indices_free(size_t *indices);
/* Proves fp16, fp64, ... of one device of a list, by compiling and running probes or from the store, and writes
 * the verdicts into it. Errors: NO_OPENCL, NO_DEVICE (it is gone), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY,
 * DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_device_probe(clg_device_info *device);

typedef struct clg_measurement {
    size_t struct_size;
    double fp32_gflops, fp16_gflops; /* peak of multiply-adds; 0: cannot be measured */
    double memory_gbytes_per_s, upload_gbytes_per_s, download_gbytes_per_s;
    double launch_us; /* enqueue and wait for an empty kernel */
} clg_measurement;
#define CLG_MEASUREMENT_INIT                                                                       \
    {                                                                                              \
        sizeof(clg_measurement), 0, 0, 0, 0, 0, 0                                                  \
    }
/* Measures what the device does at best, in a second or so. out_measurement starts with its INIT.
 * Errors: OUT_OF_DEVICE_MEMORY, KERNEL_BUILD, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_measure(clg_context *context,
                                                    clg_measurement *out_measurement);

/* What stands between this machine and OpenCL, as text to paste into a report; freed by clg_text_free. A machine
 * without OpenCL is no error. */
CLG_API CLG_MUST_USE clg_status clg_diagnose(char **out_text);

/* ---- models ---------------------------------------------------------------------------------------- */

/* Strings are borrowed from the model, never NULL. */
typedef struct clg_model_info {
    size_t struct_size;
    int64_t ir_version;
    int64_t opset; /* of the default domain */
    const char *producer, *graph_name;
    size_t n_nodes;
    int64_t n_parameters;     /* elements of float constants */
    uint64_t parameter_bytes; /* of all constants */
    const char *
        unsupported; /* why sessions refuse the model (loaded with allow_unsupported); "" when they do not */
    const char *
        missing_data; /* the file of constants that was not there (allow_external_data_missing); "" */
} clg_model_info;
#define CLG_MODEL_INFO_INIT                                                                        \
    {                                                                                              \
        sizeof(clg_model_info), 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL                              \
    }
/* out_info starts with its INIT. */
CLG_API CLG_MUST_USE clg_status clg_model_get_info(const clg_model *model,
                                                   clg_model_info *out_info);

typedef enum clg_place {
    CLG_PLACE_DEVICE = 0, /* kernels */
    CLG_PLACE_LOAD = 1,   /* depends on constants only: computed once at load, on the device */
    CLG_PLACE_SHAPE = 2,  /* arithmetic on shapes and other small known numbers, at planning */
    CLG_PLACE_VIEW = 3,   /* moves nothing: another view of the same memory */
    CLG_PLACE_HOST = 4,   /* on the host, by nature: strings, control flow */
    CLG_PLACE_FUSED = 5   /* part of another node's kernel, or removed by a pass */
} clg_place;
/* "device"; "unknown place" for a number that is none. */
CLG_API const char *clg_place_name(clg_place place);

/* One node as the model has it. */
typedef struct clg_node_info {
    const char *name; /* that of its first output when it has none */
    const char *domain, *op_type;
    int64_t opset;
    bool supported;
    clg_place place;            /* meaningful from a session's list */
    const char *reason;         /* why there; or why it is not supported */
    const char *const *outputs; /* names of values; "" for one left out */
    size_t n_outputs;
} clg_node_info;

/* Looks at a file whose operators may be unsupported: nodes tell which, those of subgraphs too. The array and its
 * strings are freed by clg_node_list_free. Errors: IO, INVALID_MODEL, UNSUPPORTED_*: what cannot even be read. */
CLG_API CLG_MUST_USE clg_status clg_model_file_nodes(const char *path, clg_node_info **out_nodes,
                                                     size_t *out_n_nodes);
/* The nodes of a model, with the places that can be told without a device. Freed likewise. */
CLG_API CLG_MUST_USE clg_status clg_model_nodes(const clg_model *model, clg_node_info **out_nodes,
                                                size_t *out_n_nodes);
/* Where each node of the model runs in this session, for the shapes that are set. Freed likewise.
 * Errors: those of planning, see clg_session_memory. */
CLG_API CLG_MUST_USE clg_status clg_session_nodes(clg_session *session, clg_node_info **out_nodes,
                                                  size_t *out_n_nodes);
/* Accepts NULL. */
CLG_API void clg_node_list_free(clg_node_info *nodes, size_t n_nodes);

/* Graphviz text of the model's graph; freed by clg_text_free. */
CLG_API CLG_MUST_USE clg_status clg_model_dot(const clg_model *model, char **out_text);

typedef struct clg_shape_override {
    const char *input; /* by name */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
} clg_shape_override;

/* Floating-point operations (a multiply-add counts two) of one run, without a device; inputs not named have
 * their declared shapes, free dimensions 1. Nodes whose shapes cannot be known are left out. shapes may be NULL
 * when n_shapes is 0. Errors: NOT_FOUND (an input), SHAPE. */
CLG_API CLG_MUST_USE clg_status clg_model_flops(const clg_model *model,
                                                const clg_shape_override *shapes, size_t n_shapes,
                                                double *out_flops);
/* Bytes of weights, of intermediate values alive together at most, of inputs and outputs: an estimate without a
 * device, before any pass. out_estimate starts with its INIT. Errors: as clg_model_flops. */
CLG_API CLG_MUST_USE clg_status clg_model_memory(const clg_model *model,
                                                 const clg_shape_override *shapes, size_t n_shapes,
                                                 clg_memory_estimate *out_estimate);

/* An operator that clgraph has: a row of its tables. */
typedef struct clg_operator_info {
    const char *domain, *name, *family;
    int since, until;   /* opset versions; until 0: to the newest */
    const char *dtypes; /* "T: float32, float16; I: int64" */
    const char *place;  /* "device", "shape arithmetic", ... */
} clg_operator_info;
/* All of them, by family; freed by clg_operator_list_free, which accepts NULL. */
CLG_API CLG_MUST_USE clg_status clg_operator_list(clg_operator_info **out_operators,
                                                  size_t *out_n_operators);
CLG_API void clg_operator_list_free(clg_operator_info *operators, size_t n_operators);

/* ---- plans and profiles ------------------------------------------------------------------------------ */

/* The plan for the shapes that are set: steps, kernels, slabs, views; readable text, freed by clg_text_free. What
 * depends on data that no run has brought yet is missing. Errors: those of planning, see clg_session_memory. */
CLG_API CLG_MUST_USE clg_status clg_session_plan_text(clg_session *session, char **out_text);

/* One step of the last run; needs a context with profiling. Strings live as long as the session, or until
 * clg_session_keep_values. */
typedef struct clg_step_profile {
    const char *node; /* name of the (fused) node */
    const char *op_type;
    const char *kernel;  /* "gemm_simd" */
    double start_us;     /* from the first step's start, device clock */
    double duration_us;  /* of work on the device; CLBlast's kernels together */
    double queued_us;    /* from being enqueued to the start */
    double flops, bytes; /* of work, 0 when not counted */
    const char *impl;    /* to compute the node: "winograd_4x4"; its steps have it in common */
    /* Where there were several: what the node computes, as clg_context_add_choices knows it, and all ways with a space
     * between. Else NULL. */
    const char *problem, *impls;
} clg_step_profile;
/* The steps of the last run in order, none before a run; freed by clg_session_profile_free, which accepts NULL.
 * Errors: INVALID_ARGUMENT (a context without profiling), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_profile(clg_session *session,
                                                    clg_step_profile **out_steps,
                                                    size_t *out_n_steps);
CLG_API void clg_session_profile_free(clg_step_profile *steps, size_t n_steps);

/* ---- choosing kernels ------------------------------------------------------------------------------------- */

/* A node that can be computed in several ways is computed by the one that was measured to be fastest on this device and
 * driver, else by the one that estimates favour. What was measured (`cltool tune` does it) is text: the line "clgraph
 * choices 1", then for each problem a line of implementation, tab and problem.
 * add: known from now on, kept in the store, and followed by sessions that are made from now on; of two lines about one
 * problem the last counts, and an implementation that does not exist is passed over. All of it: freed by clg_text_free. Any thread. Errors:
 * INVALID_ARGUMENT (text that is none, which names the line). */
CLG_API CLG_MUST_USE clg_status clg_context_add_choices(clg_context *context, const char *lines);
CLG_API CLG_MUST_USE clg_status clg_context_choices(clg_context *context, char **out_lines);

/* ---- self-tests ---------------------------------------------------------------------------------------------- */

/* One kernel on one small problem. Strings are never NULL. */
typedef struct clg_selftest_case {
    const char *op_type, *problem; /* "Conv", "float32[2,21,13,19] float32[37,21,3,3]" */
    const char *impl, *kernel;     /* "winograd_4x4", "winograd_simd" */
    bool has_choice;               /* one of several implementations of the node */
    bool passed;
    /* Of all elements of the result, the largest error over the size of the terms that the element is made of, and what is
     * allowed. Infinite for NaNs, and where something was written behind the result. */
    double worst_error, bound;
    const char *failure; /* why it could not be run, "" otherwise */
} clg_selftest_case;
/* Computes small problems of awkward sizes on the device and compares each element with the host's answer: in every way
 * where a node has several, with `all` by every kernel that there is a reference for. At the end verdicts go to the store and
 * count from now on, see clg_selftest: a kernel that several problems use passes if it is right in all of them. kernels: which class, default the device's. progress may be NULL. Freed by
 * clg_selftest_free, which accepts NULL. A kernel that is wrong is no error. Errors: OUT_OF_DEVICE_MEMORY, DEVICE_LOST,
 * CANCELLED, INVALID_ARGUMENT. */
CLG_API CLG_MUST_USE clg_status clg_context_selftest(clg_context *context, clg_kernel_class kernels,
                                                     bool all, clg_progress_callback progress,
                                                     void *user, clg_selftest_case **out_cases,
                                                     size_t *out_n_cases);
CLG_API void clg_selftest_free(clg_selftest_case *cases, size_t n_cases);

typedef struct clg_counters {
    size_t struct_size;
    uint64_t programs_compiled; /* by the driver from source, in this context */
    uint64_t programs_loaded;   /* from the store */
    uint64_t kernels_launched, blas_calls;
    uint64_t plans_made, weights_packed;
    uint64_t device_bytes, device_bytes_peak; /* of buffers that clgraph made: now, at most */
} clg_counters;
#define CLG_COUNTERS_INIT                                                                          \
    {                                                                                              \
        sizeof(clg_counters), 0, 0, 0, 0, 0, 0, 0, 0                                               \
    }
/* What a context has done so far. Any thread. out_counters starts with its INIT. */
CLG_API CLG_MUST_USE clg_status clg_context_counters(const clg_context *context,
                                                     clg_counters *out_counters);

/* Keeps the values of these node outputs (by value name) at the next runs, to be read by clg_session_get_output.
 * Fusion across them is switched off, so that kernels differ from those of a plain session. n_names 0: of all that are
 * tensors with names NULL, of none with any other pointer. What was set, bound and linked stays. Errors: NOT_FOUND (no
 * such value), those of clg_session_create, BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_keep_values(clg_session *session,
                                                        const char *const *names, size_t n_names);

/* ---- the store of compiled programs --------------------------------------------------------------------- */

/* cache_dir, in all of these, NULL: $CLG_CACHE_DIR, else the user's. Several processes may use one folder. The path
 * is freed by clg_text_free. Errors of all: IO, INVALID_ARGUMENT (an empty name). */
CLG_API CLG_MUST_USE clg_status clg_cache_path(const char *cache_dir, char **out_path);
typedef struct clg_cache_entry {
    const char *name, *what;
    uint64_t size_bytes;
    int64_t used_seconds; /* since 1970 */
} clg_cache_entry;
/* Freed by clg_cache_list_free, which accepts NULL. A folder that is not there has no entries. */
CLG_API CLG_MUST_USE clg_status clg_cache_list(const char *cache_dir, clg_cache_entry **out_entries,
                                               size_t *out_n_entries);
CLG_API void clg_cache_list_free(clg_cache_entry *entries, size_t n_entries);
/* Removes all entries. out_n_removed may be NULL, here and below. */
CLG_API CLG_MUST_USE clg_status clg_cache_clear(const char *cache_dir, size_t *out_n_removed);
/* Removes the entries whose `what` matches a pattern: '*' stands for any characters, '?' for one. Those that remember that a
 * driver's compiler died match "*: compiler crash*". */
CLG_API CLG_MUST_USE clg_status clg_cache_remove(const char *cache_dir, const char *pattern,
                                                 size_t *out_n_removed);
/* Removes the least recently used entries beyond max_bytes; 0: the limit that the store keeps by itself, 256 MiB. */
CLG_API CLG_MUST_USE clg_status clg_cache_prune(const char *cache_dir, uint64_t max_bytes,
                                                size_t *out_n_removed);
/* Writes all entries into one file, and adds the entries of such a file. A damaged file adds nothing: IO. */
CLG_API CLG_MUST_USE clg_status clg_cache_pack(const char *cache_dir, const char *file);
CLG_API CLG_MUST_USE clg_status clg_cache_unpack(const char *cache_dir, const char *file,
                                                 size_t *out_n_entries);

/* ---- values as files -------------------------------------------------------------------------------------- */

/* A tensor from .npy or .pb (TensorProto), by extension. Errors: IO (also a damaged .npy), INVALID_MODEL (a damaged
 * .pb), UNSUPPORTED_DTYPE, INVALID_ARGUMENT (another extension). */
CLG_API CLG_MUST_USE clg_status clg_value_load(const char *path, clg_value **out_value);
/* The same where the kind of value is known: a .pb holds a SequenceProto, OptionalProto or MapProto, which nothing in it
 * tells. */
CLG_API CLG_MUST_USE clg_status clg_value_load_kind(const char *path, clg_value_kind kind,
                                                    clg_value **out_value);
/* A tensor, of host or device, to .npy or .pb; written aside and renamed. Errors: IO, INVALID_ARGUMENT (another
 * extension, no tensor), UNSUPPORTED_DTYPE (.npy has no such type). */
CLG_API CLG_MUST_USE clg_status clg_value_save(clg_value *value, const char *path);
/* Named sets in .npz. names and values are arrays of *out_n, freed by clg_npz_free, which accepts NULL.
 * Errors: IO, UNSUPPORTED_DTYPE. */
CLG_API CLG_MUST_USE clg_status clg_npz_load(const char *path, char ***out_names,
                                             clg_value ***out_values, size_t *out_n);
CLG_API void clg_npz_free(char **names, clg_value **values, size_t n);
/* Written aside and renamed, compressed. */
CLG_API CLG_MUST_USE clg_status clg_npz_save(const char *path, const char *const *names,
                                             clg_value *const *values, size_t n);
/* A .npy file larger than memory, rows - steps of the first axis - at a time: nothing of it stays in memory. Each object
 * is for one thread at a time. Errors of opening: IO (also a damaged or cut file), UNSUPPORTED_DTYPE, SHAPE (a scalar). */
typedef struct clg_npy_reader clg_npy_reader;
CLG_API CLG_MUST_USE clg_status clg_npy_reader_open(const char *path, clg_npy_reader **out_reader);
CLG_API void clg_npy_reader_free(clg_npy_reader *reader); /* accepts NULL */
/* What the file holds, as clg_value_... say it; dims[0] is the number of rows. NULL reads as no dtype and rank 0. */
CLG_API clg_dtype clg_npy_reader_dtype(const clg_npy_reader *reader);
CLG_API size_t clg_npy_reader_rank(const clg_npy_reader *reader);
CLG_API const int64_t *clg_npy_reader_dims(const clg_npy_reader *reader);
/* Rows first_row .. first_row + n_rows - 1, row-major, in any order; size_bytes must be theirs, data may be NULL when it is
 * 0. Errors: INVALID_ARGUMENT (rows that are not there, another size), IO. */
CLG_API CLG_MUST_USE clg_status clg_npy_reader_read(clg_npy_reader *reader, int64_t first_row,
                                                    size_t n_rows, void *data, size_t size_bytes);
/* Writes such a file of as many rows as come: aside, to appear at its path by commit. dims[0] is ignored; rank 1 and more.
 * Errors: IO, SHAPE (rank 0), UNSUPPORTED_DTYPE (.npy has no such type), INVALID_ARGUMENT (another size, after commit). */
typedef struct clg_npy_writer clg_npy_writer;
CLG_API CLG_MUST_USE clg_status clg_npy_writer_open(const char *path, clg_dtype dtype, size_t rank,
                                                    const int64_t *dims,
                                                    clg_npy_writer **out_writer);
CLG_API CLG_MUST_USE clg_status clg_npy_writer_append(clg_npy_writer *writer, size_t n_rows,
                                                      const void *data, size_t size_bytes);
CLG_API CLG_MUST_USE clg_status clg_npy_writer_commit(clg_npy_writer *writer);
/* Without a commit before, what was written is removed. Accepts NULL. */
CLG_API void clg_npy_writer_free(clg_npy_writer *writer);
/* ONNX Cast between numeric types, on the host. *out_exact (may be NULL) tells whether every element kept its value.
 * Errors: UNSUPPORTED_DTYPE (strings, complex numbers), INVALID_ARGUMENT (no tensor). */
CLG_API CLG_MUST_USE clg_status clg_value_cast(clg_value *value, clg_dtype dtype,
                                               clg_value **out_value, bool *out_exact);
/* Element i as a double; any numeric type or bool; host tensors. 0 elsewhere. */
CLG_API double clg_value_get_double(const clg_value *value, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
