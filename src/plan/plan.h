/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: the steps of a run, as plain data without OpenCL handles. A plan is a tree of segments,
 * planned for one set of input shapes (and contents of the inputs that shapes depend on). A segment
 * is a list of steps with every operand placed in memory. It ends at the end of the graph, or where
 * the host must read the content of values (`reads`) to continue planning; there is a child segment
 * for each content that occurred. Ordinary models have one segment.
 *
 * Plans are created under the owner's lock and immutable afterwards, except for the lists of
 * children. Segments are reference-counted: the tree holds one reference to each, every user
 * another, a child one to its parent. The size of the tree is limited: the least recently used
 * segments are removed from it, and live until their last user releases them.
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
    /* in the segment at depth `index`: its block of small contents known to the planner */
    PLACE_LITERAL
} place_kind;

typedef struct plan_placement {
    place_kind kind;
    uint32_t index;
    int64_t offset_bytes;
} plan_placement;

/* ---- steps and segments ---------------------------------------------------------------------- */

#define PLAN_WINDOW 32 /* steps in a window: the bits of plan_step.after */

typedef struct plan_step {
    const step *what;
    const plan_placement
        *buffers; /* one per ARG_BUFFER, in order; GEMM: a, b, c; copy: from, to; fill: to */
    uint32_t n_buffers;
    /* Bit i: step i of the step's window of PLAN_WINDOW steps must have completed before this step
     * starts (transitive dependencies are implied). From the second window on, the first step of a
     * window depends on all steps before it, the others at least on that first step. */
    uint32_t after;
    /* the node of the graph; for a step in a branch or loop, the outermost control node */
    node_id node;
    /* the node within the control node; NULL for steps of the graph itself */
    const struct node *inner;
    const char *variant; /* name of the candidate that the step belongs to */
    /* If there were several candidates and context->notes_choices: the problem (tuning_table.h) and
     * the names of all implementations, separated by spaces. Else NULL. */
    const char *problem, *impls;
} plan_step;

/* A value at the end of a segment that the host reads or the caller receives. */
typedef struct plan_port {
    value_id value;
    clg_dtype dtype; /* NONE: not a tensor */
    shape dims;
    plan_placement place; /* dense; PLACE_NONE if the value is empty or only `known` */
    const tensor *known;  /* content known to the planner; borrowed from the segment or graph */
    clg_value_kind kind;
    /* Items of a sequence, optional or map, which has no memory of its own. A map: its keys [C] and
     * its values: [C] for one map, [N,C] for a sequence of N maps. */
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
    /* the root's clock at the last use, for removing the least recently used */
    uint64_t last_use;
    uint64_t clock;        /* the root: counts uses of segments in its tree */
    size_t n_children_all; /* the root: number of segments below it */
    /* host memory, approximately: of this segment; the root: of all segments below it */
    size_t size_bytes, children_bytes;
    atomic_bool detached; /* removed from the tree */
    tensor **arrived;     /* a child: contents of the parent's `reads` for which it was planned */
    size_t n_arrived;
    plan_step *steps;
    size_t n_steps;
    bool has_fault_args;
    bool overlaps; /* some steps may run concurrently */
    bool last;
    plan_port *reads; /* values that the host must read; empty when last */
    size_t n_reads;
    plan_port *outputs; /* of the whole plan; only when last */
    size_t n_outputs;
    size_t
        /* size of each output of the plan that has memory so far, else PLAN_NO_OUTPUT */
        *output_bytes;
    const uint8_t *literals; /* contents for PLACE_LITERAL */
    size_t literal_bytes;
    size_t *slab_bytes; /* sizes of the slabs, up to and including this segment */
    size_t n_slabs;
    /* lower bound for slabs: the largest total size of values alive at one step */
    size_t live_bytes;
    /* clg_place of each node of the graph; 255: not planned in this segment */
    uint8_t *node_places;
    tensor **held; /* references to known contents that the segment uses */
    size_t n_held;
    /* the planner's state (state.h) from which children are planned; NULL when last */
    void *state;
    void *bound; /* belongs to the plan's owner: the literals in device memory */
    void (*release_bound)(void *bound);
};

typedef struct plan {
    /* by input of the graph: dtype, dims; `known` for inputs that shapes depend on */
    value_fact *inputs;
    arena memory; /* items of inputs */
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
    /* Packs `weight` with the steps of p unless it is packed already; sets the index for
     * PLACE_PACKED. */
    clg_status (*pack)(void *self, value_id weight, const value_fact *fact, const candidate *c,
                       const packing *p, uint32_t *out_index);
} plan_owner;

/* Tests whether the driver can compile a candidate; called for each candidate that is chosen. If it
 * cannot, the thread's error text says why. compiles may be NULL: then all compile. */
typedef struct plan_compiler {
    void *self;
    clg_status (*compiles)(void *self, const candidate *impl, bool *out_compiles);
} plan_compiler;

/* Runs the self-test of an implementation: whether it computes correct results on this device.
 * Called where a node has several implementations, and for attention. passes may be NULL: then all
 * pass. */
typedef struct impl_validator {
    void *self;
    clg_status (*passes)(void *self, const lower_context *lc, const candidate *impl,
                         bool *out_passes);
} impl_validator;

struct tuning_table;

typedef struct plan_context {
    const graph *graph;
    const device_caps *caps;
    const char *device, *driver; /* names of device and driver, for messages */
    clg_kernel_class kernel_class;
    bool allow_blas;
    bool strict; /* nothing numeric is computed on the host */
    bool (*blas_accepts)(const gemm_problem *p);
    /* Facts of weights (constants and results of the init plan), by value: kind, dtype and dims,
     * and `known` where the host has the content. dtype NONE for values that are computed by each
     * run. */
    const value_fact *weights;
    /* By node: true for nodes that depend on constants only. The init plan, which is run once,
     * computes these; other plans skip them. */
    const bool *node_is_init;
    bool is_init_plan;
    const value_id *outputs; /* values that the plan outputs */
    size_t n_outputs;
    size_t n_required; /* outputs from this index on are omitted if they are not tensors */
    plan_owner owner;
    impl_validator validator;
    plan_compiler compiler;
    /* texts that steps refer to; belongs to the owner, outlives the plans, extended by planning */
    step_texts *texts;
    /* names of candidates to prefer where a node has them, best first */
    const char *const *preferred;
    size_t n_preferred;
    const struct tuning_table *choices; /* the tuning table; NULL: none */
    bool notes_choices;
    lower_trial trial; /* overrides for benchmarks; all zero otherwise */
} plan_context;

/* Creates a plan for the inputs' facts. If shape inference needs contents of graph inputs that are
 * not known, returns CLG_OK with *out_plan NULL, and marks these inputs in out_needed_inputs (the
 * caller's array, one bool per input): call again with these contents known. */
clg_status plan_create(const plan_context *context, const value_fact *inputs,
                       bool *out_needed_inputs, plan **out_plan);
/* Returns a reference to the child of `segment` for these contents of its reads; plans it if
 * necessary. */
clg_status plan_continue(const plan_context *context, plan_segment *segment,
                         tensor *const *contents, plan_segment **out_child);
/* Returns the approximate host memory of the plan's segments. */
size_t plan_size_bytes(const plan *p);
plan *plan_retain(plan *p);
void plan_free(plan *p);
plan_segment *plan_segment_retain(plan_segment *segment);
void plan_segment_free(plan_segment *segment); /* accepts NULL */

/* Appends a readable listing of the plan's segments to out_text. */
struct strbuf;
void plan_dump(const plan_context *context, const plan *p, struct strbuf *out_text);

/* ---- parts of the planner, one file each ----------------------------------------------------- */

/* Creates a segment (segment.c) and returns a reference. parent is NULL for a root, else it is
 * retained. */
clg_status segment_create(plan_segment *parent, size_t n_nodes, plan_segment **out_segment);
/* Returns a reference to the child for these contents; NULL when it is not in the tree. */
plan_segment *segment_find_child(plan_segment *segment, tensor *const *contents);
/* Adds a child to the tree, unless its parent was removed from it; then removes the least recently
 * used segments beyond the limits. */
void segment_add_child(plan_segment *segment, plan_segment *child);
/* Removes all descendants from the tree. */
void segment_detach(plan_segment *segment);

/* The chosen candidate (impl_choice.c), and `problem` and `impls` of plan_step. */
typedef struct plan_choice {
    const candidate *impl; /* NULL when no candidate may run here, or none passes its self-test */
    const char *problem, *impls;
} plan_choice;

/* Returns the error that says why plan_choose found no candidate. */
clg_status plan_no_choice(const plan_context *context, const lower_context *lc);
clg_status plan_choose(const plan_context *context, const lower_context *lc, plan_choice *out);
/* Returns whether a candidate is allowed by the context's options and is not rejected: it compiles
 * and passes its self-test, as far as these were tried. */
bool plan_may_run(const plan_context *context, const candidate *impl);
/* Returns the candidate with the lowest estimated cost, or the first that may run if it has no
 * estimate; NULL when none may run. */
const candidate *plan_cheapest(const plan_context *context, const candidate *candidates);

/* Sequences and optionals as inputs and outputs (aggregate.c). All tensors of an input are stored
 * in one buffer, each at an aligned offset; those of an output are wherever the plan placed
 * them. */
/* Computes the offset of the tensor of fact f after *end_bytes, and advances *end_bytes past it.
 * Strings take no bytes. Returns UNSUPPORTED_DTYPE for other dtypes of less than a byte. */
clg_status aggregate_offset(const value_fact *f, size_t *end_bytes, size_t *out_offset_bytes);
/* Computes the bytes of all tensors of an input, with alignment. */
clg_status aggregate_bytes(const value_fact *f, size_t *out_bytes);
/* Compares deeply: kinds, dtypes, shapes, and contents where they are known. */
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
 * memory: the largest first, each into the lowest gap. Slabs grow up to max_slab_bytes, then
 * another slab is added. *slab_bytes (n_slabs sizes) is extended; *out_live_bytes is the largest
 * total size of blocks alive at one step. */
clg_status plan_place_blocks(plan_block *blocks, size_t n_blocks, size_t align_bytes,
                             size_t max_slab_bytes, size_t **slab_bytes, size_t *n_slabs,
                             size_t *out_live_bytes);

#endif
