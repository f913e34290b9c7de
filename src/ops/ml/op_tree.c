/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers clgraph.TreeEnsemble, to which a pass decomposes the tree operators of ai.onnx.ml
 * (pass_ml.c), and clgraph.Scores, the last step of classifiers and regressors. Kernels:
 * cl/ml/tree.cl, cl/ml/scores.cl.
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/ml/tree.h"

/* ---- TreeEnsemble ---------------------------------------------------------------------------- */

enum { TREE_X, TREE_NODES, TREE_VALUES, TREE_ROOTS, TREE_IDS, TREE_WEIGHTS, TREE_BASE };

static clg_status tree_infer(op_context *c)
{
    const shape *x = &c->inputs[TREE_X].dims;
    const int64_t wanted = node_int(c->node, "features", 1);
    shape dims = {.rank = 2,
                  .dims = {x->rank == 2 ? x->dims[0] : 1, node_int(c->node, "targets", 1)}};
    if (x->rank != 1 && x->rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "its input must be rows of features [N,F]");
    const int64_t features = x->dims[x->rank - 1];
    if (features != DIM_UNKNOWN && features < wanted)
        return op_error(c, CLG_ERROR_SHAPE, "its trees read %lld features, there are %lld",
                        (long long)wanted, (long long)features);
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

/* How trees are divided among work-items. Estimated, not measured; checked by: cltool profile MODEL
 */
#define SIMD_ITEMS_PER_UNIT 4   /* work-items per core, at least: they balance the load */
#define SIMT_ITEMS_PER_UNIT 256 /* work-items per compute unit of a GPU, at least */
#define MAX_BLOCKS 32           /* blocks of a row, at most: a single work-item sums them */

/* Returns the number of blocks into which the trees of each row are divided, so that the device is
 * busy even with few rows. */
static int64_t blocks_of(const lower_context *c, int64_t rows, int64_t trees)
{
    const int64_t wanted =
        work_units(c) * (lower_is_simd(c) ? SIMD_ITEMS_PER_UNIT : SIMT_ITEMS_PER_UNIT);
    int64_t blocks = rows > 0 ? (wanted + rows - 1) / rows : 1;
    if (blocks > trees) blocks = trees;
    return blocks > MAX_BLOCKS ? MAX_BLOCKS : blocks < 1 ? 1 : blocks;
}

static clg_status tree_lower(lower_context *c)
{
    const lower_operand *x = &c->inputs[TREE_X], *values = &c->inputs[TREE_VALUES];
    const int64_t rows = c->outputs[0].dims.dims[0], targets = c->outputs[0].dims.dims[1];
    const int64_t trees = c->inputs[TREE_ROOTS].dims.dims[0], blocks = blocks_of(c, rows, trees);
    const uint64_t local = lower_is_simd(c) ? 1 : 64;
    step_builder *b = &c->build;
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(work_check_dtype(c, values->dtype));
    const char *prelude =
        prelude_text(b, "P_T=%d P_W=%d P_HOW=%d P_VEC=1", (int)x->dtype, (int)values->dtype,
                     (int)node_int(c->node, "aggregate", TREE_SUM));
    candidate *impl = step_candidate(b, "tree");
    const operand part = step_scratch(b, impl, (size_t)(rows * blocks * targets) * sizeof(float));
    step *s = step_kernel(b, impl, "tree", "tree_walk", prelude);
    STEP_BUFFERS(b, s, {operand_input(TREE_X), x->dtype}, {operand_input(TREE_NODES), CLG_INT32},
                 {operand_input(TREE_VALUES), values->dtype},
                 {operand_input(TREE_ROOTS), CLG_INT32}, {operand_input(TREE_IDS), CLG_INT32},
                 {operand_input(TREE_WEIGHTS), CLG_FLOAT32}, {part, CLG_FLOAT32});
    STEP_INTS(b, s, rows, x->dims.dims[x->dims.rank - 1], trees, targets, blocks,
              (trees + blocks - 1) / blocks);
    work_range_1d(c, s, rows * blocks, local);
    s = step_kernel(b, impl, "tree", "tree_finish", prelude);
    STEP_BUFFERS(b, s, {part, CLG_FLOAT32}, {operand_input(TREE_BASE), CLG_FLOAT32},
                 {operand_output(0), CLG_FLOAT32});
    STEP_INTS(b, s, rows, trees, targets, blocks);
    work_range_1d(c, s, rows * targets, local);
    return CLG_OK;
}

/* ---- Scores ---------------------------------------------------------------------------------- */

static bool makes_two(const node *n)
{
    const int64_t form = node_int(n, "form", 0);
    return form == 1 || form == 2;
}

static clg_status scores_infer(op_context *c)
{
    shape dims = c->inputs[0].dims;
    if (dims.rank != 2) return op_error(c, CLG_ERROR_SHAPE, "scores must be [N,E]");
    if (makes_two(c->node)) dims.dims[1] = 2;
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    dims.rank = 1;
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_INT64, &dims);
    return CLG_OK;
}

static clg_status scores_lower(lower_context *c)
{
    const shape *x = &c->inputs[0].dims;
    const bool index = work_has_output(c, 1);
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "scores");
    step *s = step_kernel(b, impl, "scores", "scores",
                          prelude_text(b, "P_TRANSFORM=%d P_FORM=%d P_INDEX=%d",
                                       (int)node_int(c->node, "transform", ML_NONE),
                                       (int)node_int(c->node, "form", 0), index));
    STEP_BUFFERS(b, s, {operand_input(0), CLG_FLOAT32}, {operand_output(0), CLG_FLOAT32});
    if (index)
        step_arg_buffer(b, s, operand_output(1), CLG_INT64);
    else
        step_arg_buffer(b, s, step_scratch(b, impl, sizeof(int64_t)), CLG_INT64);
    STEP_INTS(b, s, x->dims[0], x->dims[1]);
    step_arg_float(b, s, (double)node_float(c->node, "limit", 0));
    work_range_1d(c, s, x->dims[0], lower_is_simd(c) ? 1 : 64);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types tree_types[] = {{'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64) |
                                                DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
                                      {'I', DTYPE_BIT(CLG_INT32)},
                                      {'V', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)},
                                      {'F', DTYPE_BIT(CLG_FLOAT32)},
                                      {'L', DTYPE_BIT(CLG_INT64)},
                                      {0}};
static const op_attribute tree_attributes[] = {{"aggregate", ATTRIBUTE_INT, true, OP_ANY},
                                               {"features", ATTRIBUTE_INT, true, OP_COUNT},
                                               {"targets", ATTRIBUTE_INT, true, OP_COUNT},
                                               {0}};
static const op_attribute scores_attributes[] = {{"form", ATTRIBUTE_INT, true, OP_ANY},
                                                 {"transform", ATTRIBUTE_INT, true, OP_ANY},
                                                 {"limit", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                 {0}};

const op_row op_rows_tree[] = {
    {.name = "TreeEnsemble",
     .grad = GRAD_NONE(GRAD_OF_ML),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(7, 7, "TIVIIFF"),
     OP_OUTPUTS(1, 1, "F"),
     .types = tree_types,
     .attributes = tree_attributes,
     .infer = tree_infer,
     .lower = tree_lower},
    {.name = "Scores",
     .grad = GRAD_NONE(GRAD_OF_ML),
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(1, 1, "F"),
     OP_OUTPUTS(1, 2, "FL"),
     .types = tree_types,
     .attributes = scores_attributes,
     .infer = scores_infer,
     .lower = scores_lower},
};
const size_t n_op_rows_tree = sizeof op_rows_tree / sizeof op_rows_tree[0];
