/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's working state: the fact (dtype, shape, elements if known) of each value so far, and
 * the blocks of memory ("roots") that hold values. Copied at the end of a segment, so that each
 * child continues from there.
 */
#ifndef CLG_PLAN_STATE_H
#define CLG_PLAN_STATE_H

#include "plan/plan.h"

#define ROOT_NONE UINT32_MAX
#define STEP_END UINT32_MAX /* a lifetime that reaches the end of the segment */

/* A block of memory that holds one value, or several that are views of it. */
typedef struct plan_root {
    place_kind kind;
    uint32_t index; /* as in plan_placement; of PLACE_SLAB, set when slabs are placed */
    size_t size_bytes;
    /* PLACE_SLAB: offset in the slab, set when slabs are placed; PLACE_LITERAL: offset in the
     * segment's literals */
    int64_t offset_bytes;
    uint32_t first_step, last_step; /* lifetime in pending steps; STEP_END */
    bool used;                      /* a step of this segment uses it */
    bool placed;                    /* PLACE_SLAB: an earlier segment placed it */
    /* the last node of the main graph that reads a value in it or in a part of it; NODE_NONE: not
     * known, or it is used to the end */
    node_id last_read;
    bool live; /* set by finish_segment: a value in this root is needed after the segment */
    uint32_t
        /* the root that contains this one, such as the output of a Concat; ROOT_NONE: none */
        home;
    int64_t home_offset_bytes; /* in home */
} plan_root;

/* A value during planning. */
typedef struct plan_value {
    /* dtype NONE: not computed yet; `known` is borrowed, a segment or the graph holds it */
    value_fact fact;
    uint32_t root;        /* ROOT_NONE: not on the device */
    int64_t offset_elems; /* from the start of the root */
    int64_t strides[CLG_MAX_RANK];
    bool dense;  /* row-major without gaps */
    bool weight; /* constant in all runs; packed and placed by value id */
    /* Items of a sequence (fact.kind), immutable once set. Of a map: keys and values, as in
     * plan_port. */
    const struct plan_value *items;
    size_t n_items;
} plan_value;

/* The memory of an operand: a root and an offset in it. */
typedef struct root_ref {
    uint32_t root;
    int64_t offset_bytes;
} root_ref;

/* A plan_step whose operands are not placed in memory yet. */
typedef struct pending_step {
    const step *what;
    root_ref *buffers;
    uint32_t n_buffers;
    node_id node;
    const node *inner;
    const char *variant, *problem, *impls;
} pending_step;

/* A plan_append whose slice is not placed in memory yet. */
typedef struct pending_append {
    plan_value slice; /* dense, in a root */
    uint32_t index;
    bool is_first;
} pending_append;

struct plan_state;
struct plan_scope;

/* The functions that differ between Loop, Scan and SequenceMap. */
typedef struct plan_loop_kind {
    size_t first_output; /* index of the body's first output that is loop-carried or stacked */
    /* Sets the inputs of the body for iteration number loop->iteration. */
    clg_status (*start)(struct plan_state *s);
    /* Produces output i of the node in value `to`, after the last iteration. */
    clg_status (*result)(struct plan_state *s, const struct plan_scope *scope, size_t i,
                         value_id to);
} plan_loop_kind;

/* The state of a loop between two iterations. Immutable once an iteration has started, since an
 * older segment may continue from an older state. */
typedef struct plan_loop {
    const plan_loop_kind *kind;
    int64_t iteration, trip; /* number of the current iteration; their count, < 0: no limit */
    bool has_condition;
    size_t n_carried, n_scans; /* numbers of loop-carried values and of stacked outputs */
    const plan_value *carried; /* loop-carried values at the start of the current iteration */
    struct plan_scan *scans;   /* newest first */
    /* Scan and SequenceMap: the node's inputs; each iteration reads a slice of them. */
    const plan_value *inputs;
    size_t n_inputs;
    int64_t length;           /* Scan: number of iterations per batch */
    struct plan_scan *finals; /* Scan with batches: the final states of each batch, newest first */
    /* Where its first iteration began: the steps of that are counted if it is one segment. */
    const plan_segment *first_segment;
    size_t first_step;
    /* Of a loop whose iterations are child segments that run repeatedly (iterate.c): the segment
     * before them, borrowed. NULL: the loop is unrolled. */
    plan_segment *base;
    uint32_t number; /* as in plan_iteration */
    /* Memories of PLACE_STATE, from first_memory on: n_slots for parity 0, n_slots for parity 1,
     * one for each stacked output. */
    uint32_t first_memory, parity;
    size_t n_slots;  /* loop-carried values, and the iteration number if the body uses it */
    size_t n_pinned; /* roots below this index stay alive to the end of each iteration */
    const value_fact *slices; /* facts of the slices of each stacked output */
} plan_loop;

/* The stacked outputs of one iteration, or the final states of one batch item of Scan, in a
 * list. */
typedef struct plan_scan {
    const plan_value *values; /* n_scans; n_carried for final states */
    struct plan_scan *previous;
} plan_scan;

/* A graph whose nodes are being planned: the model's, or a branch or body nested in it. Nodes of
 * nested graphs are copied, with inputs and outputs renumbered to ids of the state's values, so
 * that other code does not distinguish scopes. */
typedef struct plan_scope {
    const graph *graph;
    const node *nodes;
    size_t n_nodes, next; /* next: index of the node to plan now */
    size_t base;          /* id of the scope's first value */
    const value_id *ids;  /* maps a value_id of the graph to one of the state; NULL: identical */
    const node *owner;    /* the control node, with the ids of the enclosing scope */
    plan_loop *loop;      /* for the body of a loop; else NULL */
    bool was_read;        /* the host had to read the condition after this iteration */
} plan_scope;

#define PLAN_MAX_SCOPES (GRAPH_MAX_DEPTH + 1)

typedef struct plan_state {
    const plan_context *context;
    plan_value *values;
    size_t n_values, values_capacity;
    uint32_t *output_of; /* by value of the main graph: its index in the plan's outputs */
    plan_scope *scopes;  /* the innermost last */
    size_t n_scopes;
    plan_root *roots;
    size_t n_roots, roots_capacity;
    size_t *slab_bytes; /* sizes of the slabs so far */
    size_t n_slabs;
    arena lowering; /* memory for lowering one node; cleared after each */
    /* If the size of the current node's outputs depends on data and a preceding node computed it
     * (op_row.stages): the node to plan with the result; else NULL. */
    const node *staged;
    size_t staged_base;           /* id of the first value that the preceding node produced */
    size_t n_iterations;          /* iterations planned so far, of all loops */
    uint32_t n_loops, n_memories; /* iterated loops, and memories of PLACE_STATE so far */
    const uint32_t *in_place;     /* plan.in_place */
    bool has_control;             /* a control node was planned: values may share roots unnoticed */

    /* The fields below belong to the current segment. */
    plan_segment *segment;
    struct memo_block *block; /* what it adds to the memo; borrowed; NULL: nothing so far */
    pending_step *pending;
    size_t n_pending, pending_capacity;
    uint8_t *literals;
    size_t literal_bytes, literals_capacity;
    pending_append *appends; /* in the segment's arena */
    size_t n_appends;
    tensor **held; /* references to tensors known on the host; moved to the segment at its end */
    size_t n_held, held_capacity;
} plan_state;

/* Creates the state at the first node: weights are known, other values are not computed. */
clg_status state_create(const plan_context *context, plan_state **out_state);
/* Copies the state for a child segment: values, scopes, roots and slab sizes. The fields of the
 * current segment start empty. */
clg_status state_copy(const plan_state *s, plan_state **out_copy);
void state_free(plan_state *s);
size_t state_size_bytes(const plan_state *s); /* 0 for NULL */

/* Adds a root of size_bytes; kind and index as in plan_placement. */
clg_status state_add_root(plan_state *s, place_kind kind, uint32_t index, size_t size_bytes,
                          uint32_t *out_root);
/* Returns the outermost root that contains `root` (often `root` itself), and the offset in it. */
uint32_t state_home(const plan_state *s, uint32_t root, int64_t *out_offset_bytes);
/* Returns the placement of ref in memory; valid after slabs are placed. */
plan_placement state_place(const plan_state *s, root_ref ref);
/* Makes v's root a part of root `home` at an offset: steps that are already appended and write v
 * then write there. So an input of Concat is written directly into the output. Does nothing and
 * returns false unless v occupies a whole root of this segment that a step uses and that is not
 * part of another. */
bool state_join(plan_state *s, value_id v, uint32_t home, int64_t offset_bytes);
/* Returns OUT_OF_DEVICE_MEMORY, naming v, if a buffer of the device cannot hold size_bytes. */
clg_status state_check_fit(const plan_state *s, value_id v, size_t size_bytes);
/* Allocates dense memory for v: in the output buffer when v is an output of the plan, else a new
 * root. */
clg_status state_place_value(plan_state *s, value_id v);
/* Extends the use of v's root, which holds another value too, and of the roots that contain it, to
 * the last node that reads v. */
void state_share_root(plan_state *s, value_id v);
/* Ensures that v has device memory: adds roots for weights and for values known on the host. */
clg_status state_materialise(plan_state *s, value_id v);
/* Takes ownership of a reference to t, and releases it when the segment is freed, or at once on
 * failure. */
clg_status state_hold(plan_state *s, tensor *t);
/* Appends a step whose buffers are in roots, and extends the lifetimes of these roots. is_kept: the
 * step lives as long as the segment; else a copy is appended. */
clg_status state_add_step(plan_state *s, const step *what, const root_ref *buffers,
                          uint32_t n_buffers, const node *n, const plan_choice *choice,
                          bool is_kept);
/* Computes the size of a value whose shape and dtype are known. */
clg_status state_value_bytes(const plan_value *v, size_t *out_bytes);

/* Returns the innermost scope. */
plan_scope *state_scope(plan_state *s);
/* Returns the current node of the model's main graph. */
node_id state_main_node(const plan_state *s);
/* As value_text (graph.h), also for values of the planner: "a value of node 'x' (Loop, opset 13)",
 * the current node of the model's main graph. */
const char *state_value_text(const plan_state *s, value_id v, char buffer[VALUE_TEXT_BYTES]);
/* Appends n values that are not computed yet, with consecutive ids. */
clg_status state_add_values(plan_state *s, size_t n, value_id *out_first);

/* Lowers node n, whose output facts are inferred, and appends its steps (emit.c). *out_place: a
 * clg_place, where the node is computed. */
clg_status emit_node(plan_state *s, const node *n, uint8_t *out_place);
/* Appends a step that copies v to dense memory in `root` (emit.c). n: the node that needs the copy,
 * for messages; NULL: an output, or the host. */
clg_status emit_copy(plan_state *s, value_id v, uint32_t root, const node *n);
/* Gives v dense device memory (emit.c). n: as in emit_copy. */
clg_status emit_dense(plan_state *s, value_id v, const node *n);

/* The result of lowering a node. */
typedef struct node_lowering {
    const lower_view *views; /* of a view, by output; else NULL */
    plan_choice choice;      /* of another node */
    const int64_t *joins;    /* lower_context.joins */
    uint32_t in_place;       /* lower_context.in_place */
    bool is_kept;            /* is in the memo, so that steps need not be copied */
    /* By packing: its index for PLACE_PACKED, or PLAN_APART: not packed by the owner so far. */
    uint32_t packed[CANDIDATE_MAX_PACKINGS];
} node_lowering;

/* The memo of planning (memo.c). All do nothing where there is none for node n: the plan has no
 * memo, or the node is not one of the main graph. */
/* Sets the facts of n's outputs if those of its inputs are as last time; *out_found: they are. */
clg_status memo_recall(plan_state *s, const node *n, bool *out_found, bool *out_all_known);
/* Records the facts of n's inputs and outputs, which were just inferred. */
clg_status memo_keep_facts(plan_state *s, const node *n);
/* Finds the lowering of n for the layouts of its inputs, after memo_recall or memo_keep_facts.
 * *out_found is NULL if there is none. */
clg_status memo_find(plan_state *s, const node *n, uint32_t in_place, node_lowering **out_found);
/* Records a lowering; *out_kept is the record, NULL if none is made. */
clg_status memo_keep(plan_state *s, const lower_context *lc, const plan_choice *choice,
                     node_lowering **out_kept);
/* Places blocks in slabs as plan_place_blocks does, or as last time where sizes and lifetimes are
 * the same. Does so for root segments only. */
clg_status memo_place_blocks(plan_state *s, plan_block *blocks, size_t n_blocks,
                             size_t align_bytes);
void memo_block_free(struct memo_block *block);
size_t memo_block_size_bytes(const struct memo_block *block); /* 0 for NULL */

/* Returns, as bits, the outputs of node n that are computed in the memory of an input (in_place.c).
 * The facts of its outputs and the memory of its inputs are set. */
uint32_t in_place_find(const plan_state *s, const node *n);
/* Gives such an output the memory of its input. */
void in_place_set(plan_state *s, const node *n, uint32_t output);
/* Returns whether v, output `output` of the plan, is in the memory of the input for which that was
 * requested. */
bool in_place_is_output(const plan_state *s, const plan_value *v, size_t output);

/* Computes the dependencies between the steps of the segment (order.c). */
clg_status order_steps(plan_state *s);
/* short_run.c: gives each launch of a segment that one thread computes soonest one work-group. */
clg_status short_run_settle(const plan_context *context, plan_segment *segment);

/* Infers the facts of node n's outputs and sets them (plan_node.c). *out_needs: inputs whose
 * elements inference needs, as bits; if not 0, nothing is set. *out_all_known: the host knows all
 * outputs, so that nothing is left to compute on the device. */
clg_status plan_infer(plan_state *s, const node *n, uint32_t *out_needs, bool *out_all_known);
/* Infers and emits a node that the planner created, and whose shapes depend on no elements of
 * inputs. */
clg_status plan_made_node(plan_state *s, const node *n);

/* Begins a node whose output size depends on data, such as NonZero, which is planned in two stages
 * (staged.c): plans a first node that computes the size, unless that was done before or the host
 * knows the inputs. *out_node is the node to plan instead of n; n itself for other operators. */
clg_status staged_begin(plan_state *s, const node *n, const node **out_node);
/* Ends what staged_begin began, after *out_node is planned. */
void staged_end(plan_state *s);

/* Begins an operator with a body: If, Loop, Scan or SequenceMap (control.c). *out_needs: inputs
 * that the host must know first, as bits. *out_entered: the nodes of a body are to be planned
 * next. */
clg_status control_enter(plan_state *s, const node *n, uint32_t *out_needs, bool *out_entered);
/* Ends a branch, or an iteration of a loop, whose nodes are all planned (control.c). *out_ends: the
 * segment ends here, and the host reads the value *out_read unless that is VALUE_NONE. */
clg_status control_leave(plan_state *s, value_id *out_read, bool *out_ends);
/* Starts an iteration of an iterated loop in a new segment, a child of the loop's base. */
clg_status control_iterate(plan_state *s, const plan_carried *carried);
/* Ends an iterated loop after `count` iterations, in a new segment. */
clg_status control_end_loop(plan_state *s, int64_t count);

/* Iterated loops: the steps of one iteration are a segment that runs repeatedly (iterate.c). */
/* Returns whether the loop of the innermost scope can continue so after its first iterations: all
 * that it carries and stacks are tensors in device memory. */
bool iterate_is_possible(const plan_state *s);
/* Returns whether it should although the host knows its number of iterations, `trip`, and its
 * condition: because it is long, and each iteration has the same steps. before: what it carried at
 * the start of the last iteration. */
bool iterate_pays(plan_state *s, const plan_value *before);
/* Ends the segment before the next iteration of the innermost scope's loop: copies the values that
 * it carries to their memories. */
clg_status iterate_begin(plan_state *s);
/* Ends a segment at the end of an iteration. is_open: the host must read the condition; stops: it
 * knows that the loop ends. */
clg_status iterate_end(plan_state *s, bool is_open, bool stops);
/* Sets the loop of the innermost scope to the start of an iteration with these carried values. */
clg_status iterate_start(plan_state *s, const plan_carried *carried);
/* Sets value `to` to stacked output `scan` of an iterated loop that has ended. */
clg_status iterate_stack(plan_state *s, const plan_scope *scope, size_t scan, value_id to);
/* Infers the facts of the values of a body (body_facts.c), by value id of the scope's graph, for
 * an iteration whose number, condition and carried values' contents are not known. Unknown where
 * they depend on control flow. *out_needs: a node needs contents that the host does not know.
 * Free the facts with ops_facts_free. */
clg_status body_facts(const plan_state *s, const plan_scope *scope, value_fact **out_facts,
                      bool *out_needs);
/* Plans an operator on sequences (sequence.c). *out_needs: as control_enter. */
clg_status sequence_node(plan_state *s, const node *n, op_control_kind kind, uint32_t *out_needs);
/* Plans an operator on optionals (optional.c). */
clg_status optional_node(plan_state *s, const node *n, op_control_kind kind);
/* Plans an operator on maps (map_type.c). */
clg_status maps_node(plan_state *s, const node *n, op_control_kind kind);
/* Begins Scan or SequenceMap (scan.c): enters the body, or produces the outputs if there are no
 * iterations. */
clg_status scan_enter(plan_state *s, const node *n, op_control_kind kind, bool *out_entered);
/* Enters the body of a loop and starts its first iteration; if `runs` is false, produces the
 * outputs of a loop without iterations instead (control.c). */
clg_status control_start_loop(plan_state *s, const graph *body, const node *n, plan_loop *loop,
                              bool runs);
/* Stacks output `scan` (an index among the stacked outputs) of all iterations along a new axis, in
 * reverse order if `reverse`, into value `to`. */
clg_status control_stack(plan_state *s, const plan_scope *scope, size_t scan, int64_t axis,
                         bool reverse, value_id to);
/* Returns the graph in an attribute; NULL if the attribute is absent. */
const graph *control_graph(const node *n, const char *name);
/* Copies value v so that it can be stored without its id: a weight gets its memory first. */
clg_status control_settle(plan_state *s, value_id v, plan_value *out_value);
/* Makes value v a sequence of these items, whose array must live as long as the segment. */
void sequence_set(plan_state *s, value_id v, clg_dtype dtype, const plan_value *items,
                  size_t n_items);
/* Sets *out_part to a view of slice `at` of a value along an axis, with that axis removed. */
void sequence_part(const plan_value *whole, int axis, int64_t at, plan_value *out_part);
/* Concatenates n_items values along an axis into `to`; new_axis: stacks them along a new axis
 * instead. n: the node, for messages. */
clg_status sequence_join(plan_state *s, const plan_value *items, size_t n_items, int64_t axis,
                         bool new_axis, value_id to, const node *n);
/* Returns the tensor of input i of a control node if the host knows it. Returns NULL if the input
 * is absent, or unknown, in which case its bit in *needs is set. */
const tensor *control_content(const plan_state *s, const node *n, size_t i, uint32_t *needs);
/* Makes value v a scalar of this dtype with element `number`, known on the host. */
clg_status control_set_known(plan_state *s, value_id v, clg_dtype dtype, int64_t number);
/* Makes value `to` an alias of `from`: equal fact, same memory. */
clg_status control_copy_value(plan_state *s, const plan_value *from, value_id to);

/* Completes the current segment: lifetimes, slabs, placements, ports (finish.c). reads: values that
 * the host must read; if there are none, and segment->next is not set, this is the last segment. */
clg_status finish_segment(plan_state *s, const value_id *reads, size_t n_reads);

#endif
