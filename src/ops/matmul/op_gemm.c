/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Gemm and MatMul, and the operators clgraph.FusedGemm and FusedMatMul, which passes create,
 * to GEMMs with at most two batch dimensions (gemm.h). MatMuls with more become several GEMMs.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/matmul_shape.h"

#include <inttypes.h>

/* ---- Gemm ------------------------------------------------------------------------------------ */

/* Sets *out_rows and *out_cols of an operand, after transposition if attribute `trans` is set. */
static void gemm_sides(const node *n, const shape *x, const char *trans, int64_t *out_rows,
                       int64_t *out_cols)
{
    const int first = node_int(n, trans, 0) != 0;
    *out_rows = x->dims[first];
    *out_cols = x->dims[1 - first];
}

static clg_status gemm_infer(op_context *c)
{
    const shape *a = &op_input(c, 0)->dims, *b = &op_input(c, 1)->dims,
                *add = &op_input(c, 2)->dims;
    char text[SHAPE_TEXT_BYTES];
    int64_t m, n, k, k_of_b;
    if (a->rank != 2 || b->rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "A and B must be matrices, not of rank %d and %d",
                        a->rank, b->rank);
    gemm_sides(c->node, a, "transA", &m, &k);
    gemm_sides(c->node, b, "transB", &k_of_b, &n);
    if (k != k_of_b && k != DIM_UNKNOWN && k_of_b != DIM_UNKNOWN)
        return op_error(c, CLG_ERROR_SHAPE, "A has %" PRId64 " columns and B %" PRId64 " rows", k,
                        k_of_b);
    const shape y = {.rank = 2, .dims = {m, n}};
    if (op_has_input(c, 2)) {
        if (add->rank > 2)
            return op_error(c, CLG_ERROR_SHAPE, "C of shape %s is not a matrix",
                            shape_text(add, text));
        for (int i = 0; i < add->rank; i++) {
            const int64_t there = add->dims[i], wanted = y.dims[2 - add->rank + i];
            if (there != 1 && there != DIM_UNKNOWN && wanted != DIM_UNKNOWN && there != wanted)
                return op_error(c, CLG_ERROR_SHAPE,
                                "C of shape %s does not broadcast to the result",
                                shape_text(add, text));
        }
    }
    CLG_TRY(epilogue_check_residual(c, 3, &y));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* Sets the bias of a GEMM from an input that broadcasts to the result. */
static void set_bias(const lower_context *c, uint32_t input, epilogue_ops *e)
{
    const lower_operand *add = lower_input(c, input);
    if (!lower_has_input(c, input) || e->beta == 0) return;
    const int rank = add->dims.rank;
    const bool across = rank > 0 && add->dims.dims[rank - 1] != 1;
    const bool down = rank > 1 && add->dims.dims[rank - 2] != 1;
    e->bias_at = operand_input(input);
    e->bias_cs = across ? 1 : 0;
    e->bias_rs = down ? add->dims.dims[rank - 1] : 0;
    if (across && !down)
        e->bias = BIAS_COLUMN;
    else if (down && !across)
        e->bias = BIAS_ROW;
    else
        e->bias = BIAS_MATRIX;
}

static clg_status gemm_op_lower(lower_context *c)
{
    const lower_operand *a = lower_input(c, 0), *b = lower_input(c, 1);
    const bool trans_a = node_int(c->node, "transA", 0) != 0,
               trans_b = node_int(c->node, "transB", 0) != 0;
    gemm_job j = {.dtype = a->dtype, .batch = 1, .batch_in = 1};
    int64_t k;
    gemm_sides(c->node, &a->dims, "transA", &j.m, &j.k);
    gemm_sides(c->node, &b->dims, "transB", &k, &j.n);
    const int64_t lda = a->dims.dims[1], ldb = b->dims.dims[1];
    j.a = (gemm_matrix){operand_input(0), trans_a ? 1 : lda, trans_a ? lda : 1, 0, 0, a->constant};
    j.b = (gemm_matrix){operand_input(1), trans_b ? 1 : ldb, trans_b ? ldb : 1, 0, 0, b->constant};
    j.c = (gemm_matrix){operand_output(0), j.n, 1, 0, 0, false};
    epilogue_read(c, &j.epilogue);
    j.epilogue.alpha = node_float(c->node, "alpha", 1.0f);
    j.epilogue.beta = node_float(c->node, "beta", 1.0f);
    set_bias(c, 2, &j.epilogue);
    return gemm_lower(c, &j, 1);
}

/* ---- MatMul ---------------------------------------------------------------------------------- */

/* Returns the shape of an operand, with its last two dimensions swapped where transA or transB of
 * com.microsoft.FusedMatMul says so. */
static shape as_operand(const node *n, const shape *x, bool is_left)
{
    shape s = matmul_as_matrix(x, is_left);
    if (x->rank > 1 && node_int(n, is_left ? "transA" : "transB", 0) != 0) {
        s.dims[s.rank - 2] = x->dims[x->rank - 1];
        s.dims[s.rank - 1] = x->dims[x->rank - 2];
    }
    return s;
}

static clg_status matmul_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims, *w = &op_input(c, 1)->dims;
    const shape a = as_operand(c->node, x, true), b = as_operand(c->node, w, false);
    shape y;
    CLG_TRY(matmul_shape(c, x, &a, w, &b, &y));
    CLG_TRY(epilogue_check_residual(c, 3, &y));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    int64_t count;
    CLG_TRY(shape_n_elements(&op_input(c, 2)->dims, &count));
    if (op_has_input(c, 2) && count != DIM_UNKNOWN && count != 1 && count != b.dims[b.rank - 1] &&
        b.dims[b.rank - 1] != DIM_UNKNOWN)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the bias has %" PRId64 " elements for %" PRId64 " columns", count,
                        b.dims[b.rank - 1]);
    return CLG_OK;
}

/* The batch dimensions of a GEMM, with the strides of A, B and C along them. */
typedef struct matmul_batch {
    int rank;
    int64_t dims[CLG_MAX_RANK], a[CLG_MAX_RANK], b[CLG_MAX_RANK], c[CLG_MAX_RANK];
} matmul_batch;

/* Sets *out to the strides of x's batch dimensions along those of `over`; 0 where x broadcasts. */
static void batch_strides(const shape *x, const shape *over, int64_t *out)
{
    int64_t stride = x->dims[x->rank - 2] * x->dims[x->rank - 1];
    const int missing = over->rank - (x->rank - 2);
    for (int i = over->rank - 1; i >= 0; i--) {
        const int64_t dim = i >= missing ? x->dims[i - missing] : 1;
        out[i] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

static void batch_move(matmul_batch *g, int from, int to)
{
    g->dims[to] = g->dims[from];
    g->a[to] = g->a[from];
    g->b[to] = g->b[from];
    g->c[to] = g->c[from];
}

/* Merges adjacent dimensions that are contiguous in A, B and C. */
static void batch_collapse(matmul_batch *g)
{
    int rank = 0;
    for (int i = 0; i < g->rank; i++) {
        const int64_t dim = g->dims[i];
        if (dim == 1) continue;
        const int o = rank - 1;
        if (rank > 0 && g->a[o] == g->a[i] * dim && g->b[o] == g->b[i] * dim &&
            g->c[o] == g->c[i] * dim) {
            const int64_t outer = g->dims[o];
            batch_move(g, i, o);
            g->dims[o] = outer * dim;
        } else {
            batch_move(g, i, rank++);
        }
    }
    g->rank = rank;
}

/* Turns the batch into one product with batch * m rows, if all batches have the same B and their
 * rows of A and C are contiguous with each other. */
static void stack_rows(matmul_batch *g, gemm_job *j)
{
    if (g->rank != 1 || g->b[0] != 0 || j->epilogue.bias == BIAS_ROW ||
        j->epilogue.bias == BIAS_MATRIX)
        return;
    if (g->a[0] != j->m * j->a.rs || g->c[0] != j->m * j->c.rs) return;
    j->m *= g->dims[0];
    g->rank = 0;
}

/* Sets the bias of FusedMatMul: a scalar, or one value for each column. */
static void matmul_bias(const lower_context *c, int64_t n, epilogue_ops *e)
{
    int64_t count;
    const lower_operand *add = lower_input(c, 2);
    if (!lower_has_input(c, 2) || shape_n_elements(&add->dims, &count) != CLG_OK) return;
    e->bias = BIAS_COLUMN;
    e->bias_at = operand_input(2);
    e->bias_cs = count == n ? 1 : 0;
    if (count != n) e->bias = BIAS_MATRIX;
}

/* Lowers a batch of any rank: one GEMM for each index of all but the last two batch dimensions. */
static clg_status lower_batches(lower_context *c, const matmul_batch *g, const gemm_job *one)
{
    const int outer = g->rank > 2 ? g->rank - 2 : 0;
    int64_t n_jobs = 1;
    for (int i = 0; i < outer; i++) n_jobs *= g->dims[i];
    if (n_jobs > 4096)
        return lower_error(c, CLG_ERROR_SHAPE,
                           "the broadcast of its batches has too many dimensions");
    gemm_job *jobs = arena_alloc(c->memory, (size_t)n_jobs, sizeof *jobs);
    if (!jobs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t at = 0; at < n_jobs; at++) {
        gemm_job *j = &jobs[at];
        *j = *one;
        int64_t rest = at;
        for (int i = outer - 1; i >= 0; i--) {
            const int64_t index = rest % g->dims[i];
            rest /= g->dims[i];
            j->a.at.offset_elems += index * g->a[i];
            j->b.at.offset_elems += index * g->b[i];
            j->c.at.offset_elems += index * g->c[i];
            j->epilogue.residual.offset_elems += index * g->c[i];
        }
    }
    return gemm_lower(c, jobs, (size_t)n_jobs);
}

static clg_status microsoft_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if (node_int(n, "transBatchA", 0) == 0 && node_int(n, "transBatchB", 0) == 0) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "%s: transBatchA and transBatchB are not supported", node_text(n, shown));
}

static clg_status matmul_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0), *w = lower_input(c, 1);
    const shape a = as_operand(c->node, &x->dims, true), b = as_operand(c->node, &w->dims, false);
    const shape batch_a = matmul_leading(&a), batch_b = matmul_leading(&b);
    shape over;
    CLG_TRY(shape_broadcast(&batch_a, &batch_b, &over));
    gemm_job j = {.dtype = x->dtype,
                  .m = a.dims[a.rank - 2],
                  .n = b.dims[b.rank - 1],
                  .k = a.dims[a.rank - 1],
                  .batch = 1,
                  .batch_in = 1};
    const bool trans_a = x->dims.rank > 1 && node_int(c->node, "transA", 0) != 0;
    const bool trans_b = w->dims.rank > 1 && node_int(c->node, "transB", 0) != 0;
    j.a = (gemm_matrix){operand_input(0), trans_a ? 1 : j.k, trans_a ? j.m : 1, 0, 0, x->constant};
    j.b = (gemm_matrix){operand_input(1), trans_b ? 1 : j.n, trans_b ? j.k : 1, 0, 0, w->constant};
    j.c = (gemm_matrix){operand_output(0), j.n, 1, 0, 0, false};
    epilogue_read(c, &j.epilogue);
    j.epilogue.alpha = node_float(c->node, "alpha", 1.0f);
    matmul_bias(c, j.n, &j.epilogue);
    matmul_batch g = {.rank = over.rank};
    int64_t stride = j.m * j.n;
    for (int i = over.rank - 1; i >= 0; i--) {
        g.dims[i] = over.dims[i];
        g.c[i] = stride;
        stride *= over.dims[i];
        j.batch *= over.dims[i];
    }
    if (j.batch == 0) return gemm_lower(c, &j, 1);
    batch_strides(&a, &over, g.a);
    batch_strides(&b, &over, g.b);
    batch_collapse(&g);
    stack_rows(&g, &j);
    j.batch = 1;
    for (int i = g.rank > 2 ? g.rank - 2 : 0; i < g.rank; i++) j.batch *= g.dims[i];
    if (g.rank > 0) {
        const int last = g.rank - 1;
        j.batch_in = g.dims[last];
        j.a.b1 = g.a[last];
        j.b.b1 = g.b[last];
        j.c.b1 = g.c[last];
    }
    if (g.rank > 1) {
        const int outer = g.rank - 2;
        j.a.b0 = g.a[outer];
        j.b.b0 = g.b[outer];
        j.c.b0 = g.c[outer];
    }
    return lower_batches(c, &g, &j);
}

/* ---- operator table -------------------------------------------------------------------------- */

#define TILED (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16))
#define WHOLE                                                                                      \
    (DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64) | DTYPE_BIT(CLG_UINT32) | DTYPE_BIT(CLG_UINT64))
static const op_types types[] = {{'T', TILED | WHOLE | DTYPE_BIT(CLG_FLOAT64)}, {0}};
static const op_types fused_types[] = {{'T', TILED}, {0}};
static const op_types transposed_types[] = {{'T', TILED | DTYPE_BIT(CLG_FLOAT64)}, {0}};

#define GEMM_ATTRIBUTES                                                                            \
    {"alpha", ATTRIBUTE_FLOAT, false, OP_ANY}, {"beta", ATTRIBUTE_FLOAT, false, OP_ANY},           \
        {"transA", ATTRIBUTE_INT, false, OP_BOOLEAN},                                              \
        {"transB", ATTRIBUTE_INT, false, OP_BOOLEAN},
static const op_attribute gemm_1_attributes[] = {
    GEMM_ATTRIBUTES{"broadcast", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute gemm_attributes[] = {GEMM_ATTRIBUTES{0}};
static const op_attribute fused_gemm_attributes[] = {GEMM_ATTRIBUTES EPILOGUE_ATTRIBUTES{0}};
static const op_attribute microsoft_gemm_attributes[] = {
    GEMM_ATTRIBUTES EPILOGUE_ATTRIBUTES{"activation_gamma", ATTRIBUTE_FLOAT, false, OP_ANY}, {0}};
static const op_attribute microsoft_matmul_attributes[] = {
    {"alpha", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"transA", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"transB", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"transBatchA", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"transBatchB", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute fused_matmul_attributes[] = {EPILOGUE_ATTRIBUTES{0}};

#define GEMM OP_OUTPUTS(1, 1, "T"), .infer = gemm_infer, .lower = gemm_op_lower
#define MATMUL OP_OUTPUTS(1, 1, "T"), .infer = matmul_infer, .lower = matmul_lower
#define CLGRAPH .domain = "clgraph", .since = 1
#define MICROSOFT .domain = "com.microsoft", .since = 1

const op_row op_rows_gemm[] = {
    {.name = "Gemm",
     .since = 1,
     .grad = GRAD_NONE("before opset 7 it broadcasts by an attribute, which has no rule"),
     .until = 6,
     .batch = BATCH_PRODUCT(batch_pass_gemm, 0, 1, 2),
     OP_INPUTS(3, 3, "T"),
     .types = types,
     .attributes = gemm_1_attributes,
     GEMM},
    {.name = "Gemm",
     .since = 7,
     .grad = GRAD_BY(grad_pass_gemm),
     .batch = BATCH_PRODUCT(batch_pass_gemm, 0, 1, 2),
     OP_INPUTS(2, 3, "T"),
     .types = types,
     .attributes = gemm_attributes,
     GEMM},
    {.name = "MatMul",
     .grad = GRAD_BY(grad_pass_matmul),
     .since = 1,
     .batch = BATCH_PRODUCT(batch_pass_matmul, 0, 1),
     OP_INPUTS(2, 2, "T"),
     .types = types,
     MATMUL},
    {.name = "FusedGemm",
     CLGRAPH,
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     OP_INPUTS(2, 4, "T"),
     .types = fused_types,
     .attributes = fused_gemm_attributes,
     .check = epilogue_check,
     GEMM},
    {.name = "FusedMatMul",
     CLGRAPH,
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     OP_INPUTS(2, 4, "T"),
     .types = fused_types,
     .attributes = fused_matmul_attributes,
     .check = epilogue_check,
     MATMUL},
    {.name = "FusedGemm",
     MICROSOFT,
     .grad = GRAD_BY(grad_pass_fused_gemm),
     OP_INPUTS(2, 3, "T"),
     .types = fused_types,
     .attributes = microsoft_gemm_attributes,
     .check = epilogue_check,
     GEMM},
    {.name = "FusedMatMul",
     MICROSOFT,
     .grad = GRAD_BY(grad_pass_matmul),
     OP_INPUTS(2, 2, "T"),
     .types = transposed_types,
     .attributes = microsoft_matmul_attributes,
     .check = microsoft_check,
     MATMUL},
};
const size_t n_op_rows_gemm = sizeof op_rows_gemm / sizeof *op_rows_gemm;
