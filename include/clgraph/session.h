/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: a model on the device of a context, its inputs, runs and outputs. clgraph.h includes
 * this header, and its rules apply.
 */
#ifndef CLGRAPH_SESSION_H
#define CLGRAPH_SESSION_H

#include <clgraph/context.h>
#include <clgraph/model.h>

#ifdef __cplusplus
extern "C" {
#endif

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
     * choose, whatever was measured. For tests and measurements; names as in clg_step_profile. For
     * one that is not a clg_implementation_name, creating fails with INVALID_ARGUMENT. */
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
 * values), so that runs with these compile nothing: plans, compiles, and runs once on zeros. Shapes
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
 * devices read tensors of 64 bytes and more in place, without a copy, if data is aligned to an
 * element and to 4 bytes (for kernels of the SIMT class: to 128 bytes, as the memory of
 * clg_value_create is).
 * Sequence and optional inputs take values of their kind. Errors: NOT_FOUND (listing the inputs),
 * SHAPE (naming the dimension), UNSUPPORTED_DTYPE, INVALID_ARGUMENT (kind of value), BUSY. */
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
 * for the first run; setting it again starts over. output NULL unlinks it. Where an operator can
 * update the input in place (GroupQueryAttention's caches with room, TensorScatter, ScatterND) and
 * is its only reader, no copy is made: elements that a failed run was to write are then undefined
 * until a run writes them. Values that were set or obtained before are not changed. Errors:
 * NOT_FOUND, UNSUPPORTED_DTYPE (the two differ), INVALID_ARGUMENT (the output is bound, or feeds
 * another input), BUSY; SHAPE at the next run when the output does not match. */
CLG_API CLG_MUST_USE clg_status clg_session_link(clg_session *session, const char *output,
                                                 const char *input);
/* Writes an output of the next runs into this value (host or device) instead of the session's
 * memory; the session keeps a reference. dtype and shape must be what the run produces (SHAPE, by
 * the run), and it must not overlap the memory of an input or another output (INVALID_ARGUMENT, by
 * the run): except that an input may be updated in place. Its value in device memory may be bound
 * to an output of the same dtype and shape that a single kernel computes from it element by
 * element, as x - rate * gradient, or that an operator updates as for clg_session_link, and nothing
 * else reads the input. NULL unbinds it. Errors: NOT_FOUND, INVALID_ARGUMENT (linked, not a tensor,
 * device memory of another context), UNSUPPORTED_DTYPE (strings), BUSY. */
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
 * clg_session_prepare. Weights are those already on the device: all of them after a run. Of a
 * session that divides layers among devices, the sum over these in the last run.
 * out_estimate starts with its INIT. Errors: those of planning: SHAPE, UNSUPPORTED_*,
 * OUT_OF_DEVICE_MEMORY, DEVICE_LOST; BUSY. */
CLG_API CLG_MUST_USE clg_status clg_session_memory(clg_session *session,
                                                   clg_memory_estimate *out_estimate);

#ifdef __cplusplus
}
#endif

#endif
