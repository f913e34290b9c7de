/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's working state: the fact of each value at the current node, and the memory roots
 * that hold values. Copied at the end of a segment, so that each child continues from there.
 */
#ifndef CLG_PLAN_STATE_H
#define CLG_PLAN_STATE_H

#include "plan/plan.h"

#define ROOT_NONE UINT32_MAX
#define STEP_END UINT32_MAX /* a lifetime that reaches the end of the segment */

/* A block of memory that holds one value or several (views). */
typedef struct plan_root {
    place_kind kind;
    uint32_t index; /* by kind; of PLACE_SLAB once placed */
    size_t size_bytes;
    int64_t offset_bytes; /* of PLACE_SLAB once placed; of PLACE_LITERAL */
    uint32_t first_step, last_step;
    bool used;   /* by a step of this segment */
    bool placed; /* PLACE_SLAB: an earlier segment placed it */
    bool live;   /* scratch of the end-of-segment computation */
    uint32_t
        /* the root that contains it, for example of a Concat's output; ROOT_NONE: none */
        home;
    int64_t home_offset_bytes;
} plan_root;

typedef struct plan_value {
    value_fact fact;      /* dtype NONE: not computed yet; `known` is held by a segment */
    uint32_t root;        /* ROOT_NONE: not on the device */
    int64_t offset_elems; /* from the root's start */
    int64_t strides[CLG_MAX_RANK];
    bool dense;
    bool weight; /* content never changes; packed and placed by this value's id */
    /* Items of a sequence (fact.kind), immutable once set. Of a map: keys and values, as in
     * plan_port. */
    const struct plan_value *items;
    size_t n_items;
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
    const node *inner;
    const char *variant, *problem, *impls;
} pending_step;

struct plan_state;
struct plan_scope;

/* The functions in which Loop, Scan and SequenceMap differ. */
typedef struct plan_loop_kind {
    size_t first_output; /* of the body, that is carried or collected */
    /* Sets the inputs of the body for iteration loop->iteration. */
    clg_status (*start)(struct plan_state *s);
    /* Makes output i of the node, after the last iteration. */
    clg_status (*result)(struct plan_state *s, const struct plan_scope *scope, size_t i,
                         value_id to);
} plan_loop_kind;

/* The state of a loop between two iterations. */
typedef struct plan_loop {
    const plan_loop_kind *kind;
    int64_t iteration, trip; /* trip < 0: no limit */
    bool has_condition;
    size_t n_carried, n_scans;
    const plan_value *carried; /* at the start of the current iteration */
    struct plan_scan *scans;   /* newest first */
    /* Scan and SequenceMap: the node's inputs, of which each iteration reads a slice. */
    const plan_value *inputs;
    size_t n_inputs;
    int64_t length;           /* Scan: iterations of one batch */
    struct plan_scan *finals; /* Scan with batches: the final states of each batch, newest first */
} plan_loop;

/* Results of one iteration that are stacked at the end. */
typedef struct plan_scan {
    const plan_value *values; /* n_scans */
    struct plan_scan *previous;
} plan_scan;

/* A graph that is being walked: the model's, or a branch or body nested in it. Nodes of nested
 * graphs are copies whose inputs and outputs are ids of the state's values, so that other code does
 * not distinguish scopes. */
typedef struct plan_scope {
    const graph *graph;
    const node *nodes;
    size_t n_nodes, next;
    size_t base;         /* id of the scope's first value */
    const value_id *ids; /* value of g -> value of the state; NULL: the same */
    const node *owner;   /* the control node, in the enclosing scope's ids */
    plan_loop *loop;     /* of a body; NULL elsewhere */
} plan_scope;

#define PLAN_MAX_SCOPES (GRAPH_MAX_DEPTH + 1)

typedef struct plan_state {
    const plan_context *context;
    plan_value *values;
    size_t n_values, values_capacity;
    uint32_t *output_of; /* by value of the graph: where it is in the plan's outputs */
    plan_scope *scopes;  /* the innermost last */
    size_t n_scopes;
    plan_root *roots;
    size_t n_roots, roots_capacity;
    size_t *slab_bytes; /* current sizes */
    size_t n_slabs;
    arena lowering; /* memory for lowering one node, cleared after each node */
    /* When the current node was measured (op_row.stages): the node that continues with the results;
     * else NULL. */
    const node *staged;
    size_t staged_base;  /* id of the first value that the measuring node produced */
    size_t n_iterations; /* of all loops, until now */

    /* The rest belongs to the current segment. */
    plan_segment *segment;
    pending_step *pending;
    size_t n_pending, pending_capacity;
    uint8_t *literals;
    size_t literal_bytes, literals_capacity;
    tensor **held; /* references of known contents, moved to the segment at its end */
    size_t n_held, held_capacity;
} plan_state;

clg_status state_create(const plan_context *context, plan_state **out_state);
/* Copies the state for a child: values, roots and slabs; the fields of a segment start empty. */
clg_status state_copy(const plan_state *s, plan_state **out_copy);
void state_free(plan_state *s);
size_t state_size_bytes(const plan_state *s); /* 0 for NULL */

clg_status state_add_root(plan_state *s, place_kind kind, uint32_t index, size_t size_bytes,
                          uint32_t *out_root);
/* Returns the outermost root that contains `root`, often itself, and the offset in it. */
uint32_t state_home(const plan_state *s, uint32_t root, int64_t *out_offset_bytes);
/* Returns the placement of ref, once slabs are placed. */
plan_placement state_place(const plan_state *s, root_ref ref);
/* Makes the memory of v a part of `home`, if it is a whole root of this segment that is not a part
 * of another; earlier writes to v are redirected with it. */
bool state_join(plan_state *s, value_id v, uint32_t home, int64_t offset_bytes);
/* Returns OUT_OF_DEVICE_MEMORY when no buffer of the device can be that large. */
clg_status state_check_fit(const plan_state *s, value_id v, size_t size_bytes);
/* Gives v its own dense memory; in the output buffer when v is an output of the plan. */
clg_status state_place_value(plan_state *s, value_id v);
/* Makes sure v is on the device: weights and known contents get their roots here. */
clg_status state_materialise(plan_state *s, value_id v);
/* Holds the reference, whose ownership it takes, until the segment is freed. */
clg_status state_hold(plan_state *s, tensor *t);
/* Appends a copy of a step whose buffers are roots; extends their lifetimes. */
clg_status state_add_step(plan_state *s, const step *what, const root_ref *buffers,
                          uint32_t n_buffers, const node *n, const plan_choice *choice);
/* Returns the bytes of a value whose fact is complete. */
clg_status state_value_bytes(const plan_value *v, size_t *out_bytes);

/* Return the current scope, and the current node of the model's graph. */
plan_scope *state_scope(plan_state *s);
node_id state_main_node(const plan_state *s);
/* Returns the name of a value of the model's graph; "" for others. */
const char *state_value_name(const plan_state *s, value_id v);
/* Appends values that are not computed yet; ids are consecutive. */
clg_status state_add_values(plan_state *s, size_t n, value_id *out_first);

/* Lowers node n, whose facts are inferred, and appends its steps (emit.c). *out_place is a
 * clg_place. */
clg_status emit_node(plan_state *s, const node *n, uint8_t *out_place);
/* Emits a dense copy of v into `root` (emit.c); n: the node that needs it, for messages. */
clg_status emit_copy(plan_state *s, value_id v, uint32_t root, const node *n);

/* Computes the dependencies between the steps of the segment (order.c). */
clg_status order_steps(plan_state *s);

/* Infers node n and sets the facts of its outputs. *out_all_known: the device has nothing to
 * compute (plan_node.c). */
clg_status plan_infer(plan_state *s, const node *n, uint32_t *out_needs, bool *out_all_known);
/* Infers and emits a node that the planner created, and that needs no contents for its shapes. */
clg_status plan_made_node(plan_state *s, const node *n);

/* Plans a node whose outputs' size depends on data (staged.c). begin: plans the node that measures
 * it, unless that was done before or the inputs are known on the host; *out_node: the node to plan
 * instead. end: to be called after *out_node is planned. */
clg_status staged_begin(plan_state *s, const node *n, const node **out_node);
void staged_end(plan_state *s);

/* Plan control nodes (control.c, sequence.c). needs: inputs whose content is missing, as bits;
 * *out_read: a value of the body that must be read first, VALUE_NONE when none. */
clg_status control_enter(plan_state *s, const node *n, uint32_t *out_needs, bool *out_entered);
clg_status control_leave(plan_state *s, value_id *out_read);
clg_status sequence_node(plan_state *s, const node *n, op_control_kind kind, uint32_t *out_needs);
/* Plans operators on optionals (optional.c). */
clg_status optional_node(plan_state *s, const node *n, op_control_kind kind);
/* Plans operators on maps (map_type.c). */
clg_status maps_node(plan_state *s, const node *n, op_control_kind kind);
/* Plans Scan and SequenceMap (scan.c): enters the body, or makes the outputs when there are no
 * iterations. */
clg_status scan_enter(plan_state *s, const node *n, op_control_kind kind, bool *out_entered);
/* Enters the body of a loop, as its next iteration or, with `runs` false, after its last one
 * (control.c). */
clg_status control_start_loop(plan_state *s, const graph *body, const node *n, plan_loop *loop,
                              bool runs);
/* Stacks the results of every iteration along a new axis; last first when reversed. */
clg_status control_stack(plan_state *s, const plan_scope *scope, size_t scan, int64_t axis,
                         bool reverse, value_id to);
/* Returns the graph in an attribute; NULL when it is absent. */
const graph *control_graph(const node *n, const char *name);
/* Returns value v as it can be stored without its id: weights get their memory now. */
clg_status control_settle(plan_state *s, value_id v, plan_value *out_value);
/* Makes value v the sequence of these items, which live as long as the segment. */
void sequence_set(plan_state *s, value_id v, clg_dtype dtype, const plan_value *items,
                  size_t n_items);
/* Views slice `at` of a device value along an axis, without that axis. */
void sequence_part(const plan_value *whole, int axis, int64_t at, plan_value *out_part);
/* Joins values along an axis into `to`; new_axis: each first gets an axis of length one there. */
clg_status sequence_join(plan_state *s, const plan_value *items, size_t n_items, int64_t axis,
                         bool new_axis, value_id to, const node *n);
/* Returns the content of input i of a control node; NULL when the input is absent, or its content
 * unknown: then marks it in needs. */
const tensor *control_content(const plan_state *s, const node *n, size_t i, uint32_t *needs);
/* Makes value v a known scalar. */
clg_status control_set_known(plan_state *s, value_id v, clg_dtype dtype, int64_t number);
/* Makes value `to` the same value as `from`. */
clg_status control_copy_value(plan_state *s, const plan_value *from, value_id to);

/* Closes the current segment: lifetimes, slabs, placements, ports (finish.c). reads: values
 * the host must learn; n_reads 0 means that this is the last segment. */
clg_status finish_segment(plan_state *s, const value_id *reads, size_t n_reads);

#endif
