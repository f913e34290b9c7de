/* SPDX-License-Identifier: Apache-2.0
 *
 * exec: the state that sessions of one model, context and options share, which does not change
 * observably: the optimised graph, the weights on the device in all their packed forms, and the
 * cache of plans.
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
    bool fp16; /* precision fp16, except at the nodes named in keep_fp32 */
    name_list keep_fp32;
    name_list disabled;  /* names of passes that do not run */
    name_list preferred; /* names of implementations, the best first */
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
    arena memory; /* copies of option strings, and arrays by value, node or input */
    graph *graph;
    bool *node_is_init;
    value_fact *weights; /* facts of constants and results of the init plan, by value_id */
    value_id *init_outputs;
    size_t n_init_outputs;
    node_id *init_parts; /* by node: the first node of its part (init.c) */
    uint8_t *n_readers;  /* by value_id: number of readers; 2: several, or not a node */
    plan_context planning;
    struct tuning_table *choices; /* the context's when the exec was created; a reference */
    step_texts texts;             /* texts of kernels in plans */

    mutex build_lock;
    exec_build_state build;

    mutex weights_lock;
    ocl_buffer **weight_buffers; /* by value_id; NULL until needed */
    bool *weight_is_bound; /* by value_id: a session's frame uses the buffer, which must stay */
    /* by value_id: was released after packing, so that a recomputed copy may be released again */
    bool *weight_may_go;
    exec_packed *packed;
    size_t n_packed, packed_capacity;
    hash_map packed_keys;
    ocl_buffer *staging; /* the memory from which packings read, during planning; else NULL */
    uint64_t weight_bytes;
    tensor **held; /* contents of init results known on the host */
    size_t n_held, held_capacity;

    mutex plan_lock;
    plan *plans; /* most recently used first */
    size_t n_plans;
    const value_fact *
        /* inputs of the plan being made, while its kernels may be compiled ahead; else NULL */
        ahead_of;
    bool *host_inputs;         /* by input: shapes depend on its content; set while planning */
    struct session_exec *next; /* in the context's registry */
} session_exec;

/* Returns a reference to the exec for these arguments: an existing one, or a new one (runs passes
 * and the init plan). */
clg_status exec_get(clg_context *context, clg_model *model, const exec_options *options,
                    clg_progress_callback progress, void *user, session_exec **out_exec);
session_exec *exec_retain(session_exec *e);
void exec_free(session_exec *e);

/* Returns the plan for these input facts (one per input of the graph); a reference. *out_plan is
 * NULL with CLG_OK when the contents of more inputs are needed: e->host_inputs says which; call
 * again with these known. */
clg_status exec_plan(session_exec *e, const value_fact *inputs, plan **out_plan);
/* compile_ahead.c: compiles, in helpers, the kernels of the plan for these inputs. Call with
 * plan_lock held. Fails only when host memory runs out. */
clg_status exec_compile_ahead(session_exec *e, const value_fact *inputs);
/* Drops the cached plans, because a kernel of one cannot be compiled: later runs plan again. Plans
 * in use stay valid. */
void exec_forget_plans(session_exec *e);
/* Returns the child of a segment for these contents of its reads; *out_child is a reference. */
clg_status exec_continue(session_exec *e, plan_segment *segment, tensor *const *contents,
                         plan_segment **out_child);
/* Appends the text of plan p; segments that no run has reached are not planned yet and are missing.
 */
void exec_dump_plan(session_exec *e, const plan *p, struct strbuf *out_text);
clg_place exec_node_place(session_exec *e, const plan *p, node_id n);
/* Returns whether planning needs the content of input i. */
bool exec_needs_content(session_exec *e, size_t i);

/* weights.c. Buffers are borrowed; they live as long as the exec. */
/* Returns the buffer of a constant for the init plan, whose frame is temporary; the buffer lives
 * until exec_drop_constants. */
clg_status exec_init_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer);
void exec_drop_constants(session_exec *e);
/* Stores result v of the init plan as a weight; retains the buffer. */
void exec_keep_weight(session_exec *e, value_id v, ocl_buffer *b);
/* Returns whether v is a result of the init plan that was released. Call with plan_lock held. */
bool exec_is_gone(session_exec *e, value_id v);
clg_status exec_packed_buffer(session_exec *e, uint32_t index, ocl_buffer **out_buffer);
clg_status exec_literals(session_exec *e, plan_segment *segment, ocl_buffer **out_buffer);
void exec_free_weights(session_exec *e);
/* Returns the bytes of weights on the device now, packed copies included. */
uint64_t exec_weight_bytes(session_exec *e);
/* packing.c. Finds the buffer of weight v, uploaded or recomputed if necessary. Borrowed; it lives
 * as long as the exec. Call without plan_lock. */
clg_status exec_weight_buffer(session_exec *e, value_id v, ocl_buffer **out_buffer);
/* Implements plan_owner.pack: packs a weight, once per recipe, and returns its index in e->packed.
 */
clg_status exec_pack(void *self, value_id weight, const value_fact *fact, const candidate *c,
                     const packing *p, uint32_t *out_index);
/* Releases memory that only packing needed. Call with plan_lock held. */
void exec_end_planning(session_exec *e);
/* init.c: finds the nodes that depend on constants only, plans and runs them, keeps the results as
 * weights. */
clg_status exec_find_init(session_exec *e);
clg_status exec_run_init(session_exec *e);
/* Recomputes result v of the init plan, and with it the other released results of its part, since
 * these are likely to be needed next; otherwise they are released at the end of planning. Call with
 * plan_lock held. */
clg_status exec_restore(session_exec *e, value_id v);

#endif
