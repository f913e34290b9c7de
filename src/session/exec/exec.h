/* SPDX-License-Identifier: Apache-2.0
 *
 * exec: what sessions of one model, context and options share, immutable to their eyes: the
 * optimised graph, the weights on the device in all their forms, and the cache of plans.
 *
 * Locks: build_lock is held while the exec is made; plan_lock guards plans (planning may pack),
 * weights_lock guards weights. They are taken in this order; the context's registry_lock may be
 * taken under any of them, its selftest_records_lock under the first two: planning may test
 * kernels.
 */
#ifndef CLG_SESSION_EXEC_H
#define CLG_SESSION_EXEC_H

#include "base/strbuf.h"
#include "plan/plan.h"
#include "session/context.h"
#include "session/exec/model.h"

typedef struct exec_options {
    clg_kernel_class kernel_class; /* simd or simt */
    bool no_blas, strict;
    bool fp16; /* precision fp16, but for the nodes of these names */
    name_list keep_fp32;
    name_list disabled;  /* passes */
    name_list preferred; /* implementations of nodes */
    name_list keep;      /* values to keep as extra outputs */
    bool keep_all;
} exec_options;

typedef struct exec_packed {
    ocl_buffer *buffer;
} exec_packed;

typedef enum exec_build_state { EXEC_TO_BUILD, EXEC_BUILT, EXEC_FAILED } exec_build_state;

typedef struct session_exec {
    refcount refs;
    clg_context *context;
    clg_model *model;
    exec_options options;
    arena memory; /* copies of option strings, arrays as long as the graph */
    graph *graph;
    bool *node_is_init;
    value_fact *weights; /* facts of constants and results of the init plan, by value_id */
    value_id *init_outputs;
    size_t n_init_outputs;
    node_id *init_parts; /* by node: the first node of those that share values with it */
    uint8_t *n_readers;  /* by value_id: nodes that read it; 2: several, or somebody else */
    plan_context planning;
    struct tuning_table *choices; /* the context's when this was made; a reference */
    step_texts texts;             /* of kernels in plans */

    mutex build_lock;
    exec_build_state build;

    mutex weights_lock;
    ocl_buffer **weight_buffers; /* by value_id; NULL until needed */
    bool *weight_is_bound; /* by value_id: a session's frame has the buffer, which stays then */
    /* by value_id: a result that was released once when it had been packed */
    bool *weight_may_go;
    exec_packed *packed;
    size_t n_packed, packed_capacity;
    hash_map packed_keys;
    ocl_buffer *staging; /* what packings read, while a plan is made; else NULL */
    uint64_t weight_bytes;
    tensor **held; /* contents of init results known on the host */
    size_t n_held, held_capacity;

    mutex plan_lock;
    plan *plans; /* most recently used first */
    size_t n_plans;
    const value_fact *
        /* inputs of the plan being made, while its kernels may be compiled ahead; else NULL */
        ahead_of;
    bool *host_inputs;         /* inputs whose content shapes depend on: found while planning */
    struct session_exec *next; /* in the context's registry */
} session_exec;

/* The exec for these: an existing one, else made now (passes, init plan). */
clg_status exec_get(clg_context *context, clg_model *model, const exec_options *options,
                    clg_progress_callback progress, void *user, session_exec **out_exec);
session_exec *exec_retain(session_exec *e);
void exec_free(session_exec *e);

/* The plan for these input facts (one an input of the graph); a reference. *out_plan is NULL
 * with CLG_OK when contents of more inputs are needed: e->host_inputs says which, call again
 * with these known. */
clg_status exec_plan(session_exec *e, const value_fact *inputs, plan **out_plan);
/* compile_ahead.c: has helpers compile the kernels of the plan for these inputs. With plan_lock
 * held. Fails for want of host memory alone. */
clg_status exec_compile_ahead(session_exec *e, const value_fact *inputs);
/* Has what comes be planned again: a kernel of a plan turned out not to compile. Plans in use
 * live on. */
void exec_forget_plans(session_exec *e);
/* *out_child is a reference. */
clg_status exec_continue(session_exec *e, plan_segment *segment, tensor *const *contents,
                         plan_segment **out_child);
/* What is known of plan p by now; segments that no run has reached are not planned yet. */
void exec_dump_plan(session_exec *e, const plan *p, struct strbuf *out_text);
clg_place exec_node_place(session_exec *e, const plan *p, node_id n);
/* Whether the content of input i is needed to plan. */
bool exec_needs_content(session_exec *e, size_t i);

/* weights.c. Buffers are borrowed; they live as long as the exec. */
/* For the init plan, whose frame does not last: the buffer of a constant lives until
 * exec_drop_constants. */
clg_status exec_init_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer);
void exec_drop_constants(session_exec *e);
/* Takes a reference: the result v of the init plan. */
void exec_keep_weight(session_exec *e, value_id v, ocl_buffer *b);
/* Whether v is a result of the init plan that was released. With plan_lock held. */
bool exec_is_gone(session_exec *e, value_id v);
clg_status exec_packed_buffer(session_exec *e, uint32_t index, ocl_buffer **out_buffer);
clg_status exec_literals(session_exec *e, plan_segment *segment, ocl_buffer **out_buffer);
void exec_free_weights(session_exec *e);
/* Bytes of weights on the device now, packed copies included. */
uint64_t exec_weight_bytes(session_exec *e);
/* packing.c. Finds the buffer of v, computed again if it was released. Borrowed; it lives as long
 * as the exec. Not with plan_lock held. */
clg_status exec_weight_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer);
/* plan_owner.pack */
clg_status exec_pack(void *self, value_id weight, const value_fact *fact, const candidate *c,
                     const packing *p, uint32_t *out_index);
/* Releases what only packing needed. With plan_lock held. */
void exec_end_planning(session_exec *e);
/* init.c: finds the nodes that depend on constants only, plans and runs them, keeps the results
 * as weights. */
clg_status exec_find_init(session_exec *e);
clg_status exec_run_init(session_exec *e);
/* Computes the result v again, and with it what else is gone of its part, since that is likely
 * to be requested next; if not, it goes at the end of planning. With plan_lock held. */
clg_status exec_restore(session_exec *e, value_id v);

#endif
