/* SPDX-License-Identifier: Apache-2.0
 *
 * exec: what sessions of one model, context and options share: the optimised graph, the weights on
 * the device, plain and packed for kernels, and the cache of plans. It changes internally (caches),
 * but not observably.
 *
 * Locks: build_lock is held while the exec is built; plan_lock guards plans, and is held while
 * planning and packing; weights_lock guards weights. They are taken in this order. The context's
 * registry_lock may be taken while any of them is held, its selftest_records_lock while the first
 * two are: planning may test kernels.
 */
#ifndef CLG_SESSION_EXEC_H
#define CLG_SESSION_EXEC_H

#include "base/strbuf.h"
#include "plan/plan.h"
#include "session/context.h"
#include "session/exec/model.h"

/* The session options that affect the graph or its plans. Sessions share an exec if these are
 * equal. */
typedef struct exec_options {
    clg_kernel_class kernel_class; /* simd or simt */
    bool no_blas, strict;          /* do not use CLBlast; reject operators computed on the host */
    uint64_t max_iterations;       /* of all loops of a run that are not unrolled */
    clg_limits limits;
    bool fp16; /* precision fp16, except at the nodes named in keep_fp32 */
    name_list keep_fp32;
    name_list disabled;  /* names of passes that do not run */
    name_list preferred; /* names of implementations, the best first */
    name_list keep;      /* values to keep as extra outputs */
    bool keep_all;       /* keep all named values */
    bool is_front;       /* has inputs and outputs only, and computes nothing (layers/) */
} exec_options;

/* Copies options; the strings are in `memory`. */
clg_status exec_options_copy(arena *memory, const exec_options *from, exec_options *out_options);

/* A weight on the device, packed for a kernel. */
typedef struct exec_packed {
    ocl_buffer *buffer;
} exec_packed;

/* Returns the bytes of a tensor; 0 if they are not known. */
static inline size_t fact_bytes(const value_fact *f)
{
    int64_t n;
    size_t n_bytes;
    return f && f->dtype != CLG_DTYPE_NONE && shape_n_elements(&f->dims, &n) == CLG_OK && n >= 0 &&
                   dtype_bytes(f->dtype, n, &n_bytes)
               ? n_bytes
               : 0;
}

typedef enum exec_build_state { EXEC_TO_BUILD, EXEC_BUILT, EXEC_FAILED } exec_build_state;

typedef struct session_exec {
    refcount refs;
    atomic_size_t n_frames; /* of sessions: they use weights without a lock */
    device_context *context;
    clg_model *model;
    exec_options options;
    memory_budget *budget;  /* of all sessions that use the exec; NULL: no limit */
    arena memory;           /* copies of option strings, and arrays by value, node or input */
    graph *graph;           /* the model's graph after the passes */
    bool *node_is_init;     /* by node: depends on constants only */
    value_fact *weights;    /* facts of constants and results of the init plan, by value_id */
    value_id *init_outputs; /* results of the init plan that other nodes use */
    size_t n_init_outputs;
    node_id *init_parts; /* by node: the first node of its connected component (init.c) */
    uint8_t *n_readers;  /* by value_id: consumers; 2: several, a graph output, a capture */
    /* by input: the output that may be computed in its memory, or PLAN_APART (exec_in_place.c) */
    uint32_t *in_place;
    plan_context planning;        /* for all plans of this exec */
    struct tuning_table *choices; /* the context's when the exec was created; a reference */
    step_texts texts;             /* texts of kernels in plans */
    /* candidates that passed their self-tests, by selftest_variant_addresses of texts in `texts`;
     * guarded as planning is */
    hash_map passed;
    /* Tiers (exec_tiers.c), guarded as planning is: whether a plan has kernels that are not
     * optimised yet; the epoch before the first of these (ocl_tiers_epoch); whether the plan being
     * made must not have any. */
    bool has_baseline;
    uint64_t tiers_epoch;
    bool is_preparing;

    mutex build_lock;
    exec_build_state build;

    mutex weights_lock;
    ocl_buffer **weight_buffers; /* by value_id; NULL until needed */
    bool *weight_is_bound; /* by value_id: a session's frame uses the buffer, which must stay */
    /* by value_id: was released after packing, so that a recomputed copy may be released again */
    bool *weight_may_go;
    exec_packed *packed; /* by index of PLACE_PACKED */
    size_t n_packed, packed_capacity;
    hash_map packed_keys;  /* "value_id|recipe" -> index in packed */
    ocl_buffer *staging;   /* weight being packed, during planning; else NULL */
    uint64_t weight_bytes; /* of all weight buffers on the device, packed or not */
    tensor **held;         /* results of the init plan known on the host */
    size_t n_held, held_capacity;

    mutex plan_lock;
    plan *plans; /* most recently used first */
    size_t n_plans;
    const value_fact *
        /* inputs of the plan being made, while its kernels may be compiled ahead; else NULL */
        ahead_of;
    bool *host_inputs;         /* by input: shapes depend on its elements; set in planning */
    struct session_exec *next; /* in the context's registry */
} session_exec;

/* Sets *out_exec to a reference to the exec for these arguments: an existing one, or a new one, for
 * which it runs the passes and the init plan. progress may be NULL. */
clg_status exec_get(device_context *context, clg_model *model, const exec_options *options,
                    clg_progress_callback progress, void *user, session_exec **out_exec);
session_exec *exec_retain(session_exec *e);
void exec_free(session_exec *e);

/* What a plan is for: the inputs' facts, one per input of the graph, and the outputs that are
 * requested in their memory (plan.in_place; NULL: none). */
typedef struct exec_request {
    const value_fact *inputs;
    const uint32_t *in_place;
    bool is_preparation; /* all kernels are to be optimised */
} exec_request;

/* Sets *out_plan to a reference to the plan for a request, or to NULL with CLG_OK if the elements
 * of more inputs are needed (exec_needs_content): call again with these known. */
clg_status exec_plan(session_exec *e, exec_request wanted, plan **out_plan);
/* Returns a reference to the plan that was used last; NULL if there is none. */
plan *exec_last_plan(session_exec *e);
/* As exec_plan, for a plan that is only looked at: nothing is tested, packed or kept, so that
 * nothing is compiled. The plan that a run makes may differ where a test fails. */
clg_status exec_plan_dry(session_exec *e, exec_request wanted, plan **out_plan);
/* Makes such a plan of a plan_context, which may be the exec's own (compile_ahead.c). Call with
 * plan_lock held. *out_packed_bytes (may be NULL): of the weights that it would pack and that are
 * not packed yet. */
clg_status exec_make_dry_plan(session_exec *e, const plan_context *context, exec_request wanted,
                              uint64_t *out_packed_bytes, plan **out_plan);
/* Return LIMIT if a plan for this request, or a segment, needs more memory than max_memory_bytes
 * (estimate.c). Call with plan_lock held. */
clg_status exec_check_plan(session_exec *e, exec_request wanted);
clg_status exec_check_segment(session_exec *e, const plan_segment *segment);
/* As exec_check_plan, for a part of the init plan. *kept_bytes: of the results of earlier parts, to
 * which those of this one are added. The exec must have a budget. */
clg_status exec_check_init(session_exec *e, const plan_context *context, uint64_t *kept_bytes);
/* Compiles the kernels of the plan for these inputs in helper processes (compile_ahead.c). Call
 * with plan_lock held. Fails only when host memory runs out or it is cancelled. */
clg_status exec_compile_ahead(session_exec *e, const value_fact *inputs);
/* Drops the cached plans, because a kernel of one cannot be compiled: later runs plan again. Plans
 * in use stay valid. */
void exec_forget_plans(session_exec *e);
/* Returns how plans of e choose kernels that are not optimised (exec_tiers.c). */
plan_tiers exec_tiers(session_exec *e);
/* Returns whether the cached plans are to be made again, since optimised kernels can take the place
 * of some of theirs, or must for a preparation. Call with plan_lock held, before a plan is looked
 * for. */
bool exec_outgrows_plans(session_exec *e, exec_request wanted);
/* Sets *out_child to a reference to the child of a segment for these tensors of its reads. */
clg_status exec_continue(session_exec *e, plan_segment *segment, tensor *const *contents,
                         plan_segment **out_child);
/* As plan_next_iteration. */
clg_status exec_next_iteration(session_exec *e, plan_segment *segment, bool again, int64_t count,
                               plan_segment **out_child);
/* Appends plan p as text. Segments that no run has reached are not planned yet and are missing. */
void exec_dump_plan(session_exec *e, const plan *p, struct strbuf *out_text);
/* Returns where node n of plan p is computed; CLG_PLACE_LOAD for nodes of the init plan. */
clg_place exec_node_place(session_exec *e, const plan *p, node_id n);
/* Returns whether planning needs the elements of input i, as far as plans so far have shown. */
bool exec_needs_content(session_exec *e, size_t i);

/* The following functions are in weights.c. Buffers that they return are borrowed, and live as long
 * as the exec, or for literals the segment, unless stated otherwise. */

/* Finds the buffer of constant v for the init plan, whose frame is temporary; it lives until
 * exec_drop_constants. */
clg_status exec_init_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer);
/* Releases the buffers of constants that no session's frame has bound. */
void exec_drop_constants(session_exec *e);
/* Stores result v of the init plan as a weight; retains the buffer. */
void exec_keep_weight(session_exec *e, value_id v, ocl_buffer *b);
/* Returns whether v is a result of the init plan that was released. Call with plan_lock held. */
bool exec_is_gone(session_exec *e, value_id v);
/* Finds packed weight `index` (PLACE_PACKED). */
clg_status exec_packed_buffer(session_exec *e, uint32_t index, ocl_buffer **out_buffer);
/* Finds the buffer of a segment's literals, uploaded at the first call. */
clg_status exec_literals(session_exec *e, plan_segment *segment, ocl_buffer **out_buffer);
/* Releases the weights if the device is lost and no session's frame uses them any more: they need
 * not wait for the last session. */
void exec_release_lost(session_exec *e);
/* Frees everything that weights.c and packing.c allocated. */
void exec_free_weights(session_exec *e);
/* Returns the bytes of weights on the device now, packed copies included. */
uint64_t exec_weight_bytes(session_exec *e);
/* Adds the bytes of the constants that the steps of a segment read and that are not on the device
 * (estimate.c). */
clg_status exec_add_new_weights(session_exec *e, const plan_segment *s, uint64_t *bytes);
/* Adds a buffer to one of the sums of an estimate. */
void estimate_add_buffer(clg_memory_estimate *m, uint64_t *sum, uint64_t size_bytes);
/* Adds the results of nodes: slabs, states of loops, and live_bytes. */
void estimate_add_slabs(clg_memory_estimate *m, const plan_segment *s);
/* Finds the buffer of weight v, uploaded or recomputed if necessary (packing.c). Borrowed; it lives
 * as long as the exec. Call without plan_lock. */
clg_status exec_weight_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer);
/* Implements plan_owner.pack: packs a weight, once per packing recipe (layout and its parameters as
 * text); *out_index is its index in e->packed. */
clg_status exec_pack(void *self, value_id weight, const value_fact *fact, const candidate *c,
                     const packing *p, uint32_t *out_index);
/* Releases memory that only packing needed. Call with plan_lock held. */
void exec_end_planning(session_exec *e);
/* Finds the nodes that depend on constants only, the values to keep of them, and their parts
 * (init.c). */
clg_status exec_find_init(session_exec *e);
/* Finds the outputs that may be computed in the memory of inputs (exec_in_place.c); after
 * exec_find_init. */
clg_status exec_find_in_place(session_exec *e);
/* Plans and runs those nodes, and keeps the results as weights. */
clg_status exec_run_init(session_exec *e);
/* Recomputes result v of the init plan, and the other released results of its part, which are
 * likely to be needed next; those that are not needed are released at the end of planning. Call
 * with plan_lock held. */
clg_status exec_restore(session_exec *e, value_id v);

#endif
