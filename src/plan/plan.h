/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: the steps of a run (kernel launches, BLAS calls, copies, fills) as plain data without
 * OpenCL handles, for one set of input shapes and, where shapes depend on inputs, their elements.
 *
 * A plan is a tree of segments. A segment is a list of steps with every operand placed in memory.
 * It ends at the end of the graph, or where the host must read tensors (`reads`) to continue
 * planning; it has one child segment for each set of tensors that occurred there. Ordinary models
 * have one segment.
 *
 * Plans are created under the owner's lock and immutable afterwards, except for the lists of
 * children. Loops of many iterations are not unrolled: the segment before such a loop has a child
 * for each set of shapes of the loop-carried values, whose steps are one iteration and which runs
 * repeatedly (plan_next_iteration). Segments are reference-counted: the tree holds one reference to
 * each, every user another, a child one to its parent. The size of the tree is limited: the least
 * recently used segments are removed from it, and live until their last user releases them.
 */
#ifndef CLG_PLAN_PLAN_H
#define CLG_PLAN_PLAN_H

#include "ops/core/op.h"

#include <clgraph/inspect.h>

/* ---- memory ---------------------------------------------------------------------------------- */

/* The memory that a plan_placement refers to, and the meaning of its index. */
typedef enum place_kind {
    PLACE_NONE,
    PLACE_SLAB,   /* index: slab */
    PLACE_INPUT,  /* index: input of the graph */
    PLACE_OUTPUT, /* index: output of the plan */
    PLACE_WEIGHT, /* index: value_id of a constant or of a result of the init plan */
    PLACE_PACKED, /* index: into the owner's table of packed weights */
    /* index: depth of the segment whose literals (small tensors known to the planner) hold it */
    PLACE_LITERAL,
    PLACE_STATE /* index: memory of a loop's carried values and stacked outputs */
} place_kind;

/* Where an operand or value is in memory. */
typedef struct plan_placement {
    place_kind kind;
    uint32_t index;
    int64_t offset_bytes;
} plan_placement;

/* ---- steps and segments ---------------------------------------------------------------------- */

#define PLAN_WINDOW 32 /* steps in a window: the bits of plan_step.after */

/* A step of a segment: what to execute, on which memory, after which other steps. */
typedef struct plan_step {
    const step *what; /* the operation, with operands relative to its node */
    const plan_placement
        *buffers; /* one per ARG_BUFFER, in order; GEMM: a, b, c; copy: from, to; fill: to */
    uint32_t n_buffers;
    /* Bit i: step i of the step's window of PLAN_WINDOW steps must have completed before this step
     * starts (transitive dependencies are implied). From the second window on, the first step of a
     * window depends on all steps before it, the others at least on that first step. */
    uint32_t after;
    /* Of the first step of a level: the number of its steps. They are independent of each other,
     * depend on all earlier steps, and all later steps depend on each of them. Otherwise 0. */
    uint32_t n_level;
    /* the node that the step computes; for a step in a branch or loop, the outermost control
     * node */
    node_id node;
    /* the node inside the branch or loop; NULL for nodes of the model's main graph */
    const struct node *inner;
    const char *variant; /* name of the candidate that the step belongs to */
    /* Only if there were several candidates and plan_context.notes_choices is set, else NULL: the
     * problem (as defined in tuning_table.h) and the names of all candidates, separated by
     * spaces. */
    const char *problem, *impls;
} plan_step;

/* A value at the end of a segment that the host reads or the caller receives. */
typedef struct plan_port {
    value_id value;
    clg_dtype dtype; /* NONE: omitted, a kept value that is not a tensor */
    shape dims;
    plan_placement place; /* dense; PLACE_NONE: only `known`, no tensor, or omitted */
    const tensor *known;  /* tensor known to the planner; borrowed from segment or graph */
    clg_value_kind kind;
    /* Items of a sequence, optional or map, which has no device memory itself. Those of a map: its
     * keys [C] and its values, which are [C] for one map, [N,C] for a sequence of N maps. */
    const struct plan_port *items;
    size_t n_items;
} plan_port;

typedef struct plan_segment plan_segment;

/* What planning the nodes of a graph gave last time, to be used again where their inputs are the
 * same (memo.c). Guarded as planning is. */
typedef struct plan_memo plan_memo;
struct memo_block;

/* A memory of PLACE_STATE that a segment writes, of at least this size. */
typedef struct plan_state_memory {
    uint32_t index;
    size_t size_bytes;
} plan_state_memory;

/* One slice of a stacked output of an iterated loop, which is appended to the earlier ones in a
 * memory of PLACE_STATE after the segment's steps. */
typedef struct plan_append {
    plan_placement from;
    uint32_t index;
    size_t size_bytes;
    bool is_first; /* the memory is empty before it */
} plan_append;

/* The loop-carried values at the start of an iteration: their facts, `known` only for those that
 * the host knows and that are not in memory; and which of two sets of memories holds them. */
typedef struct plan_carried {
    const value_fact *facts;
    size_t n_facts;
    uint32_t parity; /* 0 or 1 */
} plan_carried;

/* The end of a segment before an iterated loop, or at the end of one of its iterations. */
typedef struct plan_iteration {
    /* The segment before the loop, this one or an ancestor (borrowed): iterations are its children.
     * NULL: the segment does not end so. */
    plan_segment *base;
    uint32_t number;      /* of the loop, unique among those on the path from the root */
    int64_t n_done;       /* of the base: iterations that are complete */
    int64_t trip;         /* number of iterations; < 0: no limit */
    bool has_condition;   /* the segment's one read decides whether the loop continues */
    bool stops;           /* the host knows that it does not */
    bool wants_count;     /* what follows the loop depends on the number of iterations */
    plan_carried carried; /* for the next iteration */
    node_id node;         /* the loop; if nested, the outermost one */
} plan_iteration;

/* In plan_segment.output_bytes: the output lies in other memory, or has none yet. */
#define PLAN_NO_OUTPUT SIZE_MAX
/* In plan.in_place: no output is requested in the memory of the input. */
#define PLAN_APART UINT32_MAX

struct plan_segment {
    refcount refs;
    arena memory;
    plan_segment *parent; /* a reference */
    uint32_t depth;       /* 0 for the root */
    plan_segment *children, *sibling;
    /* the root's clock at the last use, for removing the least recently used segment */
    uint64_t last_use;
    uint64_t clock;        /* root only: counts uses of segments in its tree */
    size_t n_children_all; /* root only: number of segments below it */
    /* approximate host memory: of this segment; root only: of all segments below it */
    size_t size_bytes, children_bytes;
    atomic_bool detached; /* removed from the tree */
    tensor **arrived;     /* the tensors of the parent's `reads` for which it was planned */
    size_t n_arrived;
    plan_carried carried; /* of a child that is an iteration: what it was planned for */
    plan_iteration next;
    plan_state_memory *states;
    size_t n_states;
    plan_append *appends;
    size_t n_appends;
    plan_step *steps;
    size_t n_steps;
    size_t n_steps_before; /* of its ancestors */
    bool has_fault_args;   /* a kernel can report invalid data */
    bool overlaps;         /* some steps may run concurrently */
    bool last;             /* ends at the end of the graph */
    plan_port *reads;      /* values that the host must read; empty when last */
    size_t n_reads;
    plan_port *outputs; /* of the whole plan; only when last */
    size_t n_outputs;
    size_t
        /* sizes of the plan's outputs that have memory so far, else PLAN_NO_OUTPUT */
        *output_bytes;
    const uint8_t *literals; /* bytes of the tensors with PLACE_LITERAL */
    size_t literal_bytes;
    size_t *slab_bytes; /* sizes of the slabs, up to and including this segment */
    size_t n_slabs;
    /* lower bound of the slabs' total size: the largest total size of values alive at one step */
    size_t live_bytes;
    /* clg_place of each node of the main graph; 255: not planned in this segment */
    uint8_t *node_places;
    struct memo_block **blocks; /* references to the memory of steps that it shares with others */
    size_t n_blocks, blocks_capacity;
    tensor **held; /* references to the tensors known on the host that it uses */
    size_t n_held;
    /* the planner's state (state.h) from which children are planned; NULL when last */
    void *state;
    void *bound; /* belongs to the plan's owner: the literals in device memory */
    void (*release_bound)(void *bound);
};

/* A plan in the owner's cache. */
typedef struct plan {
    /* by input of the graph: dtype, dims; `known` for inputs on whose elements shapes depend */
    value_fact *inputs;
    arena memory; /* items of inputs */
    size_t n_inputs;
    /* By input: the output that was requested in its memory, or PLAN_APART; in the root's arena;
     * NULL: none for any. The plan grants it where the output's port is placed there. */
    const uint32_t *in_place;
    plan_segment *root;
    uint64_t last_use;
    refcount refs;
    struct plan *next;
} plan;

/* ---- planning -------------------------------------------------------------------------------- */

/* Functions that the plan's owner (exec) provides to the planner. */
typedef struct plan_owner {
    void *self;
    /* Packs `weight` with the steps of p, one of the packings of candidate c, unless it is packed
     * already. *out_index: its index for PLACE_PACKED. */
    clg_status (*pack)(void *self, value_id weight, const value_fact *fact, const candidate *c,
                       const packing *p, uint32_t *out_index);
} plan_owner;

/* Tests whether the driver can compile a candidate; called for each candidate that is chosen. If it
 * cannot, the thread's error text gives the reason. compiles may be NULL: then all compile. */
typedef struct plan_compiler {
    void *self;
    clg_status (*compiles)(void *self, const candidate *impl, bool *out_compiles);
} plan_compiler;

/* Decides whether a candidate's kernels are built without optimisation first (tiers). choose may be
 * NULL: then all are optimised. */
typedef struct plan_tiers {
    void *self;
    clg_status (*choose)(void *self, const candidate *impl, bool *out_baseline);
} plan_tiers;

/* The result of a self-test. */
typedef struct impl_check {
    bool passes;
    bool is_final;      /* the same for each node of the variant; else a later one may be tested */
    clg_status refusal; /* the driver's error, if it refuses the kernels; it is set; else CLG_OK */
} impl_check;

/* Runs the self-test of a candidate: whether it computes correct results on this device. lc->node
 * is NULL where the planner copies a tensor. check may be NULL: then all pass. */
typedef struct impl_validator {
    void *self;
    clg_status (*check)(void *self, const lower_context *lc, const candidate *impl,
                        impl_check *out);
} impl_validator;

struct tuning_table;

/* Everything that planning depends on besides the inputs: graph, device, options and callbacks. */
typedef struct plan_context {
    const graph *graph;
    const device_caps *caps;
    const char *device, *driver; /* names of device and driver, for messages */
    clg_kernel_class kernel_class;
    bool allow_blas;
    bool strict;        /* reject operators that the library computes on the host */
    uint64_t max_steps; /* of the segments from the root to the last; 0: no limit */
    bool (*blas_accepts)(const gemm_problem *p);
    /* Facts of weights (constants and results of the init plan), by value: kind, dtype and dims,
     * and `known` where the host has the tensor. dtype NONE for values that each run computes. */
    const value_fact *weights;
    /* By node: whether it depends on constants only. The init plan, which runs once, computes these
     * nodes; other plans skip them. */
    const bool *node_is_init;
    bool is_init_plan;
    /* By value of the graph: the last node that reads it; NODE_NONE for the plan's outputs. NULL:
     * nothing is computed in place (in_place.c). */
    const node_id *last_readers;
    const value_id *outputs; /* values that the plan outputs */
    size_t n_outputs;
    size_t n_required; /* outputs from this index on are omitted if they are not tensors */
    plan_owner owner;
    plan_tiers tiers;
    impl_validator validator;
    plan_compiler compiler;
    /* kernel source texts that steps refer to; belongs to the owner, outlives the plans, grows in
     * planning */
    step_texts *texts;
    /* names of candidates to prefer where a node has them, best first */
    const char *const *preferred;
    size_t n_preferred;
    const struct tuning_table *choices; /* the tuning table; NULL: none */
    bool notes_choices;                 /* record problem and impls in plan_step */
    plan_memo *memo;                    /* NULL: every node is planned anew */
    lower_trial trial;                  /* overrides for benchmarks; all zero otherwise */
    launch_budget budget;               /* how long a launch may take */
} plan_context;

/* Creates a plan for the inputs' facts. in_place: as plan.in_place; copied. An input with a request
 * must have one reader, whose output the requested one is. If shape inference needs the elements of
 * graph inputs that are not known, returns CLG_OK with *out_plan NULL, and marks these inputs in
 * out_needed_inputs (the caller's array, one bool per input): call again with these known. */
clg_status plan_create(const plan_context *context, const value_fact *inputs,
                       const uint32_t *in_place, bool *out_needed_inputs, plan **out_plan);
/* Sets *out_child to a reference to the child of `segment` for these tensors of its reads; plans it
 * if necessary. */
clg_status plan_continue(const plan_context *context, plan_segment *segment,
                         tensor *const *contents, plan_segment **out_child);
/* Sets *out_child to a reference to the segment that follows `segment`, which has a `next`: the
 * next iteration if `again`, else what follows the loop after `count` iterations. */
clg_status plan_next_iteration(const plan_context *context, plan_segment *segment, bool again,
                               int64_t count, plan_segment **out_child);
/* For tests only: whether launches of short segments have one work-group where that is faster (as
 * by default), never, or those of all segments in the SIMD class. Of the whole process; applies to
 * plans made afterwards. See short_run.c. */
typedef enum plan_short_runs {
    PLAN_SHORT_RUNS_WHERE_FASTER,
    PLAN_SHORT_RUNS_NEVER,
    PLAN_SHORT_RUNS_ALWAYS
} plan_short_runs;
void plan_short_runs_use(plan_short_runs mode);
/* Returns the approximate host memory of the plan's segments. */
size_t plan_size_bytes(const plan *p);
plan *plan_retain(plan *p);
void plan_free(plan *p);
plan_segment *plan_segment_retain(plan_segment *segment);
void plan_segment_free(plan_segment *segment); /* accepts NULL */

/* Creates an empty memo for a graph, all plans of which are of one plan_context; NULL, with CLG_OK,
 * for a graph of very many nodes. */
clg_status plan_memo_create(const graph *g, plan_memo **out_memo);
/* Forgets everything, since planning may choose otherwise now. */
void plan_memo_clear(plan_memo *m);
void plan_memo_free(plan_memo *m);

/* Appends a readable listing of the plan's segments to out_text. */
struct strbuf;
void plan_dump(const plan_context *context, const plan *p, struct strbuf *out_text);

/* ---- parts of the planner, one file each ----------------------------------------------------- */

/* Creates a segment without steps (segment.c). parent is NULL for a root, else it is retained.
 * *out_segment is a reference. */
clg_status segment_create(plan_segment *parent, size_t n_nodes, plan_segment **out_segment);
/* Returns a reference to the child for these tensors of the segment's reads; NULL if it is not in
 * the tree. */
plan_segment *segment_find_child(plan_segment *segment, tensor *const *contents);
/* Returns a reference to the child that is an iteration for these loop-carried values; NULL if it
 * is not in the tree. */
plan_segment *segment_find_iteration(plan_segment *segment, const plan_carried *carried);
/* Adds a child to the tree, unless its parent was removed from it; then removes the least recently
 * used segments beyond the limits. */
void segment_add_child(plan_segment *segment, plan_segment *child);
/* Removes all descendants from the tree. */
void segment_detach(plan_segment *segment);

/* The result of plan_choose (impl_choice.c); problem and impls as in plan_step. */
typedef struct plan_choice {
    const candidate *impl; /* NULL when no candidate may run here, or none passes its self-test */
    const char *problem, *impls;
} plan_choice;

/* Returns whether plan_choose rejected a candidate: the driver's compiler crashes on it, or it
 * failed its self-test. */
bool plan_was_rejected(const lower_context *lc);
/* Sets and returns the error that explains why plan_choose found no candidate. */
clg_status plan_no_choice(const plan_context *context, const lower_context *lc);
/* Chooses the candidate for a lowered node, as impl_choice.c describes. out->impl is NULL if there
 * is none. */
clg_status plan_choose(const plan_context *context, lower_context *lc, plan_choice *out);
/* Returns whether the context's options allow a candidate and it is not rejected, which it is after
 * it failed to compile or failed its self-test. */
bool plan_may_run(const plan_context *context, const candidate *impl);
/* Returns the candidate with the lowest estimated cost, or the first that may run if that has no
 * estimate; NULL if none may run. */
const candidate *plan_cheapest(const plan_context *context, const candidate *candidates);

/* Sequences, optionals and maps as inputs and outputs (aggregate.c). All tensors of an input are
 * stored in one buffer, each at an aligned offset; those of an output stay where the plan placed
 * them. */
/* Computes the aligned offset of the tensor of fact f after *end_bytes, and advances *end_bytes
 * past it. Strings take no bytes. Returns UNSUPPORTED_DTYPE for dtypes of less than a byte. */
clg_status aggregate_offset(const value_fact *f, size_t *end_bytes, size_t *out_offset_bytes);
/* Computes the size of the buffer for all tensors of an input, with alignment. */
clg_status aggregate_bytes(const value_fact *f, size_t *out_bytes);
/* Returns whether two facts are equal, including all items: kinds, dtypes, shapes, and known
 * tensors. */
bool aggregate_equal(const value_fact *a, const value_fact *b);

/* A block of memory with a lifetime, in steps (slabs.c). */
typedef struct plan_block {
    size_t size_bytes;
    uint32_t first_step, last_step; /* inclusive */
    bool fixed;                     /* placed already: slab and offset_bytes are given */
    uint32_t slab;
    size_t offset_bytes;
} plan_block;
/* Places the blocks that are not fixed so that blocks with overlapping lifetimes do not overlap in
 * memory (slabs.c describes how). Slabs grow up to max_slab_bytes, then another slab is added.
 * *slab_bytes (n_slabs sizes) is extended; *out_live_bytes is the largest total size of blocks
 * alive at one step. */
clg_status plan_place_blocks(plan_block *blocks, size_t n_blocks, size_t align_bytes,
                             size_t max_slab_bytes, size_t **slab_bytes, size_t *n_slabs,
                             size_t *out_live_bytes);

#endif
