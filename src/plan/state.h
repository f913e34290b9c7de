/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's working state: what is known of each value at this point of the graph, and the memory roots that
 * values live in. Copied at the end of a segment so that each child goes on from there.
 */
#ifndef CLG_PLAN_STATE_H
#define CLG_PLAN_STATE_H

#include "plan/plan.h"

#define ROOT_NONE UINT32_MAX
#define STEP_END UINT32_MAX /* a lifetime that reaches the end of the segment */

/* A piece of memory that one or several values (views) live in. */
typedef struct plan_root {
    place_kind kind;
    uint32_t index; /* by kind; of PLACE_SLAB once placed */
    size_t size_bytes;
    int64_t offset_bytes; /* of PLACE_SLAB once placed; of PLACE_LITERAL */
    uint32_t first_step, last_step;
    bool placed; /* PLACE_SLAB: an earlier segment placed it */
    bool live;   /* scratch of the end-of-segment computation */
} plan_root;

typedef struct plan_value {
    value_fact fact;      /* dtype NONE: not computed yet; known is held by a segment */
    uint32_t root;        /* ROOT_NONE: not on the device */
    int64_t offset_elems; /* from the root's start */
    int64_t strides[CLG_MAX_RANK];
    bool dense;
    bool weight; /* content never changes */
} plan_value;

/* An operand resolved to a root. */
typedef struct root_ref {
    uint32_t root;
    int64_t offset_bytes;
} root_ref;

typedef struct pending_step {
    const step *what;
    root_ref *buffers;
    uint32_t n_buffers;
    node_id node;
    const char *variant;
} pending_step;

typedef struct plan_state {
    const plan_context *context;
    plan_value *values;
    size_t n_values;
    plan_root *roots;
    size_t n_roots, roots_capacity;
    node_id next_node;
    size_t *slab_bytes; /* so far */
    size_t n_slabs;

    /* Of the segment under way only. */
    plan_segment *segment;
    pending_step *pending;
    size_t n_pending, pending_capacity;
    uint8_t *literals;
    size_t literal_bytes, literals_capacity;
    tensor **held; /* references of known contents, moved to the segment at its end */
    size_t n_held, held_capacity;
} plan_state;

clg_status state_create(const plan_context *c, plan_state **out_state);
/* A copy for a child: values, roots and slabs; the parts of a segment start empty. */
clg_status state_copy(const plan_state *s, plan_state **out_copy);
void state_free(plan_state *s);

clg_status state_add_root(plan_state *s, place_kind kind, uint32_t index, size_t size_bytes,
                          uint32_t *out_root);
/* OUT_OF_DEVICE_MEMORY when no buffer of the device can hold so much. */
clg_status state_check_fit(const plan_state *s, value_id v, size_t size_bytes);
/* Gives v memory of its own, dense; in the output buffer when v is an output of the plan. */
clg_status state_place_value(plan_state *s, value_id v);
/* Makes sure v is on the device: weights and known contents get their roots here. */
clg_status state_materialise(plan_state *s, value_id v);
/* Holds a reference (taken over) until the segment is freed. */
clg_status state_hold(plan_state *s, tensor *t);
/* Appends a step whose buffers are roots; extends their lifetimes. */
clg_status state_add_step(plan_state *s, const step *what, const root_ref *buffers,
                          uint32_t n_buffers, node_id node, const char *variant);
/* Index in the plan's outputs, or SIZE_MAX. */
size_t state_output_index(const plan_state *s, value_id v);
/* Bytes of a value whose fact is complete. */
clg_status state_value_bytes(const plan_value *v, size_t *out_bytes);

/* Lowers node n, whose facts are inferred, and appends its steps (emit.c). *out_place is a clg_place. */
clg_status emit_node(plan_state *s, node_id n, uint8_t *out_place);
/* A dense copy of v into `root` (emit.c). */
clg_status emit_copy(plan_state *s, value_id v, uint32_t root, node_id node);

/* Closes the segment under way: lifetimes, slabs, placements, ports (finish.c). reads: values the host must learn;
 * n_reads 0 means that this is the last segment. */
clg_status finish_segment(plan_state *s, const value_id *reads, size_t n_reads);

#endif
