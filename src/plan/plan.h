/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: the steps of a run, as plain data without OpenCL handles. A plan is a tree of segments.
 * The root is made for one set of input shapes (and contents of the inputs that shapes depend on).
 * A segment is a list of steps with every operand placed in memory; it ends where the graph ends,
 * or where the host must read the content of values (`reads`) to continue; there is a child segment
 * for each content. Ordinary models have one segment.
 *
 * Made under the owner's lock, immutable afterwards except for the list of children. Segments are
 * reference-counted: the tree holds one reference of each, every user another, a child one of its
 * parent. The tree is bounded: the least recently used continuations are removed from it, and live
 * until their last user releases them.
 */
#ifndef CLG_PLAN_PLAN_H
#define CLG_PLAN_PLAN_H

#include "ops/core/op.h"

#include <clgraph/inspect.h>

/* ---- memory ---------------------------------------------------------------------------------- */

typedef enum place_kind {
    PLACE_NONE,
    PLACE_SLAB,   /* index: slab */
    PLACE_INPUT,  /* index: input of the graph */
    PLACE_OUTPUT, /* index: output of the plan */
    PLACE_WEIGHT, /* index: value_id of a constant or of a result of the init plan */
    PLACE_PACKED, /* index: in the owner's table of packed weights */
    PLACE_LITERAL /* in the block of small known contents of the segment at depth `index` */
} place_kind;

typedef struct plan_placement {
    place_kind kind;
    uint32_t index;
    int64_t offset_bytes;
} plan_placement;

/* ---- steps and segments ---------------------------------------------------------------------- */

#define PLAN_WINDOW 32 /* steps: the bits of `after` */

typedef struct plan_step {
    const step *what;
    const plan_placement
        *buffers; /* one for each ARG_BUFFER in order; GEMM: a, b, c; copy: from, to; fill: to */
    uint32_t n_buffers;
    /* Bits: steps of its window of PLAN_WINDOW that must have completed before this one starts
     * (their own dependencies are implied). The first step of a window comes after all steps before
     * it, the others after that one at least. */
    uint32_t after;
    node_id node; /* of the graph; of a step inside a branch or loop, the outermost control node */
    const struct node *inner; /* the node inside it; NULL for steps of the graph itself */
    const char *variant;      /* name of its candidate */
    /* Where there were several candidates and the context records that: the problem
     * (tuning_table.h) and the names of all implementations, separated by spaces. */
    const char *problem, *impls;
} plan_step;

/* A value at the end of a segment, for outputs and reads. */
typedef struct plan_port {
    value_id value;
    clg_dtype dtype; /* NONE: not a tensor */
    shape dims;
    plan_placement
        place;           /* dense; PLACE_NONE when n_elements is 0 or the content is `known` only */
    const tensor *known; /* content that needs no device; borrowed from the segment or graph */
    clg_value_kind kind;
    /* Items of a sequence, optional or map, which has no memory itself. A map: its keys [C] and its
     * values, for one map [C], or rows [N,C] for a sequence of N maps. */
    const struct plan_port *items;
    size_t n_items;
} plan_port;

typedef struct plan_segment plan_segment;

#define PLAN_NO_OUTPUT SIZE_MAX

struct plan_segment {
    refcount refs;
    arena memory;
    plan_segment *parent; /* a reference */
    uint32_t depth;       /* 0 for the root */
    plan_segment *children, *sibling;
    uint64_t last_use;                 /* of the clock of the root */
    uint64_t clock;                    /* the root's */
    size_t n_children_all;             /* the root's: segments in the tree below it */
    size_t size_bytes, children_bytes; /* host memory, about; the root's: of all below it */
    atomic_bool detached;              /* no longer in the tree */
    tensor **arrived; /* for a child: contents of the parent's reads that lead here */
    size_t n_arrived;
    plan_step *steps;
    size_t n_steps;
    bool has_fault_args;
    bool overlaps; /* there are steps that may be in flight together */
    bool last;
    plan_port *reads; /* contents the host must learn; empty when last */
    size_t n_reads;
    plan_port *outputs; /* of the whole plan; only when last */
    size_t n_outputs;
    size_t
        *output_bytes; /* of each output of the plan that has memory so far, else PLAN_NO_OUTPUT */
    const uint8_t *literals; /* contents for PLACE_LITERAL */
    size_t literal_bytes;
    size_t *slab_bytes; /* slabs needed up to and including this segment */
    size_t n_slabs;
    size_t live_bytes;    /* the largest set of values alive together: the floor for slabs */
    uint8_t *node_places; /* clg_place of each node of the graph; 255: not planned here */
    tensor **held;        /* references of known contents */
    size_t n_held;
    void *state; /* the planner's state for planning children (planner.c); NULL when last */
    void *bound; /* the owner's: literals on the device */
    void (*release_bound)(void *bound);
};

typedef struct plan {
    value_fact *inputs; /* per input of the graph: dtype, dims, known for shape inputs */
    arena memory;       /* items of inputs */
    size_t n_inputs;
    plan_segment *root;
    uint64_t last_use;
    refcount refs;
    struct plan *next;
} plan;

/* ---- planning -------------------------------------------------------------------------------- */

/* Functions that the plan's owner (exec) provides to the planner. */
typedef struct plan_owner {
    void *self;
    /* Packs `weight` by p's steps unless it is packed; returns the index for PLACE_PACKED. */
    clg_status (*pack)(void *self, value_id weight, const value_fact *fact, const candidate *c,
                       const packing *p, uint32_t *out_index);
} plan_owner;

/* Tests whether an implementation of a node, one of several, computes correct results on this
 * device. passes may be NULL: then all do. */
/* Tests whether the driver can compile a candidate; called for each candidate that is chosen. When
 * it cannot, the thread's error text says why. compiles NULL: it can compile all. */
typedef struct plan_compiler {
    void *self;
    clg_status (*compiles)(void *self, const candidate *impl, bool *out_compiles);
} plan_compiler;

typedef struct impl_validator {
    void *self;
    clg_status (*passes)(void *self, const lower_context *lc, const candidate *impl,
                         bool *out_passes);
} impl_validator;

struct tuning_table;

typedef struct plan_context {
    const graph *graph;
    const device_caps *caps;
    const char *device, *driver; /* their names, for messages */
    clg_kernel_class kernel_class;
    bool allow_blas;
    bool strict; /* no numeric work on the host */
    bool (*blas_accepts)(const gemm_problem *p);
    /* Per value: facts of weights (constants and results of the init plan): kind, dtype and dims,
     * and `known` where the host has the content. dtype NONE for values that runs compute. */
    const value_fact *weights;
    /* Per node: true for nodes that depend on constants only. The init plan plans these and its
     * outputs are `init_outputs`; other plans skip them. */
    const bool *node_is_init;
    bool is_init_plan;
    const value_id *outputs; /* outputs of the plan */
    size_t n_outputs;
    size_t n_required; /* outputs from this index on are omitted if they are not tensors */
    plan_owner owner;
    impl_validator validator;
    plan_compiler compiler;
    step_texts *texts; /* the owner's, which outlives the plans; written to by planning */
    const char *const *preferred; /* names of candidates to use where a node has them, best first */
    size_t n_preferred;
    const struct tuning_table *choices; /* measured choices; NULL: none */
    bool notes_choices;
    lower_trial trial; /* of benchmarks; all zero otherwise */
} plan_context;

/* Creates a plan for the inputs' facts. When shape inference needs the content of graph inputs that
 * are not known, *out_plan is NULL with CLG_OK, and out_needed_inputs (the caller's array, one bool
 * per input) says which: call again with these known. */
clg_status plan_create(const plan_context *context, const value_fact *inputs,
                       bool *out_needed_inputs, plan **out_plan);
/* Returns the child of `segment` for these contents of its reads, planned now if necessary; a
 * reference. */
clg_status plan_continue(const plan_context *context, plan_segment *segment,
                         tensor *const *contents, plan_segment **out_child);
/* Returns the approximate host memory of the plan's segments. */
size_t plan_size_bytes(const plan *p);
plan *plan_retain(plan *p);
void plan_free(plan *p);
plan_segment *plan_segment_retain(plan_segment *segment);
void plan_segment_free(plan_segment *segment); /* accepts NULL */

/* Prints a readable listing of a segment and its children. */
struct strbuf;
void plan_dump(const plan_context *context, const plan *p, struct strbuf *out_text);

/* ---- parts, each its own file ---------------------------------------------------------------- */

/* The tree of segments (segment.c). create returns a reference; parent is NULL for a root, else it
 * is retained. */
clg_status segment_create(plan_segment *parent, size_t n_nodes, plan_segment **out_segment);
/* Returns the child for these contents, a reference; NULL when it is not in the tree. */
plan_segment *segment_find_child(plan_segment *segment, tensor *const *contents);
/* Adds a child to the tree, unless its parent was removed from it; removes the least recently used
 * segments beyond the limits. */
void segment_add_child(plan_segment *segment, plan_segment *child);
/* Removes all descendants from the tree. */
void segment_detach(plan_segment *segment);

/* The chosen candidate (impl_choice.c), and the fields of plan_step about the choice. */
typedef struct plan_choice {
    const candidate *impl; /* NULL when no candidate may run here, or none passes its self-test */
    const char *problem, *impls;
} plan_choice;

/* Sets the error when plan_choose found no candidate. */
clg_status plan_no_choice(const plan_context *context, const lower_context *lc);
clg_status plan_choose(const plan_context *context, const lower_context *lc, plan_choice *out);
/* Returns whether a candidate may run with these options and was not rejected by a self-test. */
bool plan_may_run(const plan_context *context, const candidate *impl);
/* Returns the cheapest candidate by estimated cost; NULL when none may run here. */
const candidate *plan_cheapest(const plan_context *context, const candidate *candidates);

/* Sequences and optionals as inputs and outputs (aggregate.c). All tensors of an input are
 * contiguous in one buffer, each aligned; those of an output are wherever the plan placed them. */
/* Returns the offset of the tensor of fact f after *end_bytes, and advances that. UNSUPPORTED_DTYPE
 * for dtypes without a size (strings). */
clg_status aggregate_offset(const value_fact *f, size_t *end_bytes, size_t *out_offset_bytes);
/* Returns the bytes of all tensors of an input. */
clg_status aggregate_bytes(const value_fact *f, size_t *out_bytes);
/* Compares deeply: kinds, dtypes, shapes, and contents where they are known. */
bool aggregate_equal(const value_fact *a, const value_fact *b);

/* A block of memory with a lifetime in steps (slabs.c). */
typedef struct plan_block {
    size_t size_bytes;
    uint32_t first_step, last_step; /* inclusive */
    bool fixed;                     /* slab and offset are given */
    uint32_t slab;
    size_t offset_bytes;
} plan_block;
/* Places blocks that are not fixed such that blocks with overlapping lifetimes do not overlap in
 * memory: largest first, into the lowest gap. Slabs grow up to max_slab_bytes, then another is
 * opened. slab_bytes: sizes before and after. */
clg_status plan_place_blocks(plan_block *blocks, size_t n_blocks, size_t align_bytes,
                             size_t max_slab_bytes, size_t **slab_bytes, size_t *n_slabs,
                             size_t *out_live_bytes);

#endif
