/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: what a run does, as plain data without OpenCL handles. A plan is a tree of segments. The
 * root is made for one set of input shapes (and contents of the inputs that shapes depend on). A
 * segment is a list of steps with every operand placed in memory; it ends where the graph ends, or
 * where the host must learn the content of values (`reads`) to go on; the continuation for each
 * content is a child segment. Ordinary models have one segment.
 *
 * Made under the owner's lock, immutable afterwards but for the list of children. Segments count
 * references: the tree has one of each, whoever works with a segment another, a child one of its
 * parent. The tree is bounded: continuations that were not used for long leave it, and live on only
 * while somebody holds them.
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
    /* Bits: steps of its window of PLAN_WINDOW that must have ended before it starts, and so
     * what they come after; the first of a window comes after all before it, and the others at
     * least after that. */
    uint32_t after;
    node_id node; /* of the graph; of a step inside a branch or loop, the outermost control node */
    const struct node *inner; /* the node inside it; NULL for steps of the graph itself */
    const char *variant;      /* of the candidate it comes from */
    /* Where there was a choice and the context notes it: the problem (choices.h) and all
     * implementations, a space between. */
    const char *problem, *impls;
} plan_step;

/* A value at the end of a segment, as outputs and reads need it. */
typedef struct plan_port {
    value_id value;
    clg_dtype dtype; /* NONE: no tensor */
    shape dims;
    plan_placement
        place; /* dense; PLACE_NONE when n_elements is 0 or the content is `known` only */
    const tensor *
        known; /* content when it did not need the device; borrowed from the segment or the graph */
    clg_value_kind kind;
    /* Of a sequence, optional or map, which has no place. A map: its keys [C] and its values,
     * one map [C] or rows of them [N,C], which are a sequence of maps. */
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
        *output_bytes; /* of each output of the plan that has memory by now, else PLAN_NO_OUTPUT */
    const uint8_t *literals; /* contents for PLACE_LITERAL */
    size_t literal_bytes;
    size_t *slab_bytes; /* slabs needed up to and including this segment */
    size_t n_slabs;
    size_t live_bytes;    /* the largest set of values alive together: the floor for slabs */
    uint8_t *node_places; /* clg_place of each node of the graph; 255: not planned here */
    tensor **held;        /* references of known contents */
    size_t n_held;
    void *state; /* what planning children needs (planner.c); NULL when last */
    void *bound; /* the owner's: literals on the device */
    void (*release_bound)(void *bound);
};

typedef struct plan {
    value_fact *inputs; /* one an input of the graph: dtype, dims, known for shape inputs */
    arena memory;       /* items of inputs */
    size_t n_inputs;
    plan_segment *root;
    uint64_t last_use;
    refcount refs;
    struct plan *next;
} plan;

/* ---- planning -------------------------------------------------------------------------------- */

/* What the planner asks of the owner (exec). */
typedef struct plan_owner {
    void *self;
    /* Packs `weight` by p's steps if that was not done before; gives the index for PLACE_PACKED. */
    clg_status (*pack)(void *self, value_id weight, const value_fact *fact, const candidate *c,
                       const packing *p, uint32_t *out_index);
} plan_owner;

/* Whether an implementation of a node, one of several, gives right results on this device.
 * passes may be NULL: all do. */
/* Whether the driver can compile a candidate at all; asked of each that is to be taken. When it
 * cannot, the thread's error text says why. compiles NULL: all can. */
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
    /* Per value: facts of weights (constants and results of the init plan). kind/dtype/dims set
     * for weights, dtype NONE for values that are computed by runs. known where the host has the
     * content. */
    const value_fact *weights;
    /* Per node: true for nodes that depend on constants only. The init plan plans these and its
     * outputs are `init_outputs`; other plans skip them. */
    const bool *node_is_init;
    bool is_init_plan;
    const value_id *outputs; /* outputs of the plan */
    size_t n_outputs;
    size_t
        n_required; /* outputs from here on may turn out to be no tensors: they are left out then */
    plan_owner owner;
    impl_validator validator;
    plan_compiler compiler;
    step_texts *texts; /* the owner's, which outlives the plans; written to by planning */
    const char *const
        *preferred; /* names of candidates to take where a node has them, the best first */
    size_t n_preferred;
    const struct tuning_table *choices; /* that were measured; NULL: none */
    bool notes_choices;
    lower_trial trial; /* of benchmarks; all zero otherwise */
} plan_context;

/* Plans from the inputs' facts. When shape inference turns out to need the content of graph
 * inputs that are not known, *out_needed_inputs (bits by input index, one bool an input,
 * caller's array) says which and *out_plan is NULL with CLG_OK: call again with these known. */
clg_status plan_create(const plan_context *context, const value_fact *inputs,
                       bool *out_needed_inputs, plan **out_plan);
/* The child of `segment` for these contents of its reads, planned now if need be; a reference. */
clg_status plan_continue(const plan_context *context, plan_segment *segment,
                         tensor *const *contents, plan_segment **out_child);
/* Of its segments in host memory, about. */
size_t plan_size_bytes(const plan *p);
plan *plan_retain(plan *p);
void plan_free(plan *p);
plan_segment *plan_segment_retain(plan_segment *segment);
void plan_segment_free(plan_segment *segment); /* accepts NULL */

/* Readable listing of a segment and its children. */
struct strbuf;
void plan_dump(const plan_context *context, const plan *p, struct strbuf *out_text);

/* ---- parts, each its own file ---------------------------------------------------------------- */

/* The tree of segments (segment.c). create: a reference; parent NULL for a root, else a
 * reference to it is taken. */
clg_status segment_create(plan_segment *parent, size_t n_nodes, plan_segment **out_segment);
/* The child that these contents lead to, a reference; NULL when it is not in the tree. */
plan_segment *segment_find_child(plan_segment *segment, tensor *const *contents);
/* Puts a child into the tree, unless its parent has left it; drops what was not used for
 * longest. */
void segment_add_child(plan_segment *segment, plan_segment *child);
/* Takes all that is below out of the tree. */
void segment_detach(plan_segment *segment);

/* The candidate to take (choice.c), and what a step of it notes. */
typedef struct plan_choice {
    const candidate *impl; /* NULL when none may run here, or none that may is right */
    const char *problem, *impls;
} plan_choice;

/* The error when plan_choose found no candidate. */
clg_status plan_no_choice(const plan_context *context, const lower_context *lc);
clg_status plan_choose(const plan_context *context, const lower_context *lc, plan_choice *out);
/* Whether a way runs with these options and was not found to be wrong. */
bool plan_may_run(const plan_context *context, const candidate *impl);
/* By estimates alone; NULL when none may run here. */
const candidate *plan_cheapest(const plan_context *context, const candidate *candidates);

/* Sequences and optionals as inputs and outputs (aggregate.c). All tensors of an input are in
 * one piece of memory, one after the other, aligned; those of an output are wherever the plan
 * made them. */
/* Where the tensor of fact f comes to be after *end_bytes, which it moves. UNSUPPORTED_DTYPE
 * for what has no bytes. */
clg_status aggregate_offset(const value_fact *f, size_t *end_bytes, size_t *out_offset_bytes);
/* Bytes of all tensors of an input. */
clg_status aggregate_bytes(const value_fact *f, size_t *out_bytes);
/* Deep: kinds, dtypes, shapes, contents where they are known. */
bool aggregate_equal(const value_fact *a, const value_fact *b);

/* A block of memory with a lifetime in steps (slabs.c). */
typedef struct plan_block {
    size_t size_bytes;
    uint32_t first_step, last_step; /* inclusive */
    bool fixed;                     /* slab and offset are given */
    uint32_t slab;
    size_t offset_bytes;
} plan_block;
/* Places blocks that are not fixed so that no two alive together overlap: largest first, lowest
 * gap. Slabs grow up to max_slab_bytes, then another is opened. slab_bytes: sizes before and
 * after. */
clg_status plan_place_blocks(plan_block *blocks, size_t n_blocks, size_t align_bytes,
                             size_t max_slab_bytes, size_t **slab_bytes, size_t *n_slabs,
                             size_t *out_live_bytes);

#endif
