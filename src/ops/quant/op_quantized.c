/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and infers operators of com.microsoft that ONNX Runtime's quantiser writes and that are
 * compositions of other operators: QGemm, QLinearSoftmax, QLinearWhere, QEmbedLayerNormalization,
 * DynamicQuantizeLSTM, NhwcMaxPool. They have no kernels: a pass that always runs decomposes them
 * (passes/quant/pass_quantized.c).
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/recurrent/recurrent.h"

#include <inttypes.h>

static clg_status not_decomposed(lower_context *c)
{
    return lower_error(c, CLG_ERROR_INTERNAL, "no pass decomposed it into other operators");
}

/* Checks that an input has 1 or n elements, if it is present. */
static clg_status check_list(const op_context *c, size_t input, int64_t n)
{
    int64_t count;
    CLG_TRY(shape_n_elements(&op_input(c, input)->dims, &count));
    if (!op_has_input(c, input) || count == 1 || !dims_differ(count, n)) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE,
                    "input %zu has %" PRId64 " numbers where 1 or %" PRId64 " are wanted", input,
                    count, n);
}

static clg_status need_inputs(const op_context *c, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        if (!op_has_input(c, i))
            return op_error(c, CLG_ERROR_INVALID_MODEL, "leaves out input %zu", i);
    return CLG_OK;
}

/* ---- QGemm ----------------------------------------------------------------------------------- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

static clg_status gemm_infer(op_context *c)
{
    const shape *a = &op_input(c, A)->dims, *b = &op_input(c, B)->dims;
    const int ta = node_int(c->node, "transA", 0) != 0, tb = node_int(c->node, "transB", 0) != 0;
    shape y = {.rank = 2}, over;
    if (a->rank != 2 || b->rank != 2 || dims_differ(a->dims[1 - ta], b->dims[tb]))
        return op_error(c, CLG_ERROR_SHAPE, "A and B are not matrices that can be multiplied");
    y.dims[0] = a->dims[ta];
    y.dims[1] = b->dims[1 - tb];
    CLG_TRY(need_inputs(c, A, 5));
    CLG_TRY(check_list(c, A_SCALE, 1));
    CLG_TRY(check_list(c, A_ZERO, 1));
    CLG_TRY(check_list(c, B_SCALE, y.dims[1]));
    CLG_TRY(check_list(c, B_ZERO, y.dims[1]));
    CLG_TRY(check_list(c, Y_SCALE, 1));
    CLG_TRY(check_list(c, Y_ZERO, 1));
    if (op_has_input(c, Y_SCALE) != op_has_input(c, Y_ZERO))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "scale and zero point of Y are wanted together");
    if (op_has_input(c, C) && shape_is_known(&y) && shape_is_known(&op_input(c, C)->dims) &&
        (shape_broadcast(&y, &op_input(c, C)->dims, &over) != CLG_OK || !shape_equal(&y, &over)))
        return op_error(c, CLG_ERROR_SHAPE, "C does not broadcast to the shape of the result");
    fact_set(&c->outputs[0], op_has_input(c, Y_ZERO) ? op_input(c, Y_ZERO)->dtype : CLG_FLOAT32,
             &y);
    return CLG_OK;
}

/* ---- QLinearSoftmax, QLinearWhere ------------------------------------------------------------ */

static clg_status softmax_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    const int64_t fallback = node_int(c->node, "opset", 0) < 13 ? 1 : -1;
    int axis;
    CLG_TRY(need_inputs(c, 0, 2));
    CLG_TRY(need_inputs(c, 3, 2));
    for (size_t i = 1; i < 5; i++) CLG_TRY(check_list(c, i, 1));
    CLG_TRY(op_prefix(c, shape_axis(node_int(c->node, "axis", fallback), x->rank, "axis", &axis)));
    fact_set(&c->outputs[0], c->outputs[0].dtype, x);
    return CLG_OK;
}

static clg_status where_infer(op_context *c)
{
    shape y;
    for (size_t i = 2; i < 9; i++)
        if (i != 4) CLG_TRY(check_list(c, i, 1));
    CLG_TRY(op_prefix(c, shape_broadcast(&op_input(c, 0)->dims, &op_input(c, 1)->dims, &y)));
    CLG_TRY(op_prefix(c, shape_broadcast(&y, &op_input(c, 4)->dims, &y)));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* ---- QEmbedLayerNormalization ---------------------------------------------------------------- */

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, SCALES };

static clg_status embed_infer(op_context *c)
{
    const shape *ids = &op_input(c, IDS)->dims, *words = &op_input(c, WORDS)->dims,
                *mask = &op_input(c, MASK)->dims;
    const bool segments = op_has_input(c, SEGMENT_IDS);
    CLG_TRY(need_inputs(c, WORDS, 2));
    CLG_TRY(need_inputs(c, GAMMA, 2));
    for (size_t i = 0; i < 10; i++) {
        const size_t input = SCALES + i;
        if (i % 5 == 2 && !segments) continue;
        CLG_TRY(need_inputs(c, input, 1));
        CLG_TRY(check_list(c, input, 1));
    }
    if (segments != op_has_input(c, SEGMENTS))
        return op_error(c, CLG_ERROR_INVALID_MODEL,
                        "segment ids and their embedding are wanted together");
    if (ids->rank != 2 || words->rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "ids [batch, places] and tables [n, width] are wanted");
    if (op_has_input(c, MASK) && (mask->rank != 2 || dims_differ(mask->dims[0], ids->dims[0])))
        return op_error(c, CLG_ERROR_SHAPE, "the mask does not have the shape of the ids");
    const shape y = {.rank = 3, .dims = {ids->dims[0], ids->dims[1], words->dims[1]}},
                count = {.rank = 1, .dims = {ids->dims[0]}};
    fact_set(&c->outputs[0], CLG_FLOAT32, &y);
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_INT32, &count);
    return CLG_OK;
}

/* ---- DynamicQuantizeLSTM --------------------------------------------------------------------- */

enum { W_SCALE = IN_P + 1, W_ZERO, R_SCALE, R_ZERO };

static clg_status lstm_check(const node *n)
{
    recurrent_desc r;
    return recurrent_read(n, &r);
}

/* Checks that an input has one value per direction, [n_dirs], or one per direction and column,
 * [n_dirs, columns]. */
static clg_status check_columns(const op_context *c, size_t input, int64_t n_dirs, int64_t columns)
{
    const shape *s = &op_input(c, input)->dims;
    if ((s->rank == 1 && !dims_differ(s->dims[0], n_dirs)) ||
        (s->rank == 2 && !dims_differ(s->dims[0], n_dirs) && !dims_differ(s->dims[1], columns)))
        return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE,
                    "input %zu has neither a number for each direction nor for each column", input);
}

static clg_status lstm_infer(op_context *c)
{
    const shape *x = &op_input(c, IN_X)->dims, *w = &op_input(c, IN_W)->dims,
                *r = &op_input(c, IN_R)->dims;
    recurrent_desc about;
    CLG_TRY(recurrent_read(c->node, &about));
    CLG_TRY(need_inputs(c, W_SCALE, 4));
    if (x->rank != 3 || w->rank != 3 || r->rank != 3 || dims_differ(w->dims[0], about.n_dirs) ||
        dims_differ(r->dims[0], about.n_dirs) || dims_differ(w->dims[1], x->dims[2]) ||
        dims_differ(w->dims[2], r->dims[2]) ||
        (r->dims[1] != DIM_UNKNOWN && dims_differ(r->dims[2], 4 * r->dims[1])))
        return op_error(c, CLG_ERROR_SHAPE, "X, W and R do not go together");
    for (size_t i = W_SCALE; i <= R_ZERO; i++)
        CLG_TRY(check_columns(c, i, about.n_dirs, r->dims[2]));
    const shape y = {.rank = 4, .dims = {x->dims[0], about.n_dirs, x->dims[1], r->dims[1]}},
                last = {.rank = 3, .dims = {about.n_dirs, x->dims[1], r->dims[1]}};
    for (size_t i = 0; i < c->n_outputs; i++) fact_set(&c->outputs[i], CLG_FLOAT32, i ? &last : &y);
    return CLG_OK;
}

/* ---- NhwcMaxPool ----------------------------------------------------------------------------- */

static clg_status max_pool_infer(op_context *c)
{
    const shape x = window_channels_first(&op_input(c, 0)->dims);
    window_desc w;
    shape y;
    CLG_TRY(window_read(c->node, &x, NULL, &w));
    window_shape(&w, x.dims[0], x.dims[1], &y);
    y = window_channels_last(&y);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define BYTES (DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8))
static const op_types types[] = {{'A', BYTES},
                                 {'B', BYTES},
                                 {'Y', BYTES},
                                 {'T', BYTES},
                                 {'S', DTYPE_BIT(CLG_FLOAT32)},
                                 {'I', DTYPE_BIT(CLG_INT32)},
                                 {'C', DTYPE_BIT(CLG_BOOL)},
                                 {0}};
static const op_attribute gemm_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, false, OP_ANY},
                                               {"transA", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                               {"transB", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                               {0}};
static const op_attribute softmax_attributes[] = {
    {"opset", ATTRIBUTE_INT, true, OP_BETWEEN(1, INT16_MAX)},
    {"axis", ATTRIBUTE_INT, false, OP_ANY},
    {0}};
static const op_attribute embed_attributes[] = {{"epsilon", ATTRIBUTE_FLOAT, false, OP_AT_LEAST(0)},
                                                {0}};
static const op_attribute lstm_attributes[] = {
    {"activation_alpha", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"activation_beta", ATTRIBUTE_FLOATS, false, OP_ANY},
    {"activations", ATTRIBUTE_STRINGS, false, OP_ANY},
    {"clip", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"direction", ATTRIBUTE_STRING, false, OP_WORDS(recurrent_directions)},
    {"hidden_size", ATTRIBUTE_INT, false, OP_COUNT},
    {"input_forget", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute pool_attributes[] = {
    WINDOW_ATTRIBUTES(true){"ceil_mode", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};

#define DECOMPOSED .domain = "com.microsoft", .since = 1, .types = types, .lower = not_decomposed

const op_row op_rows_quantized[] = {
    {.name = "QGemm",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_PRODUCT(batch_pass_gemm, 0, 3, 6),
     DECOMPOSED,
     OP_INPUTS(5, 9, "ASABSBISY"),
     OP_OUTPUTS(1, 1, "?"),
     .attributes = gemm_attributes,
     .infer = gemm_infer},
    {.name = "QLinearSoftmax",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_FROM("axis", 1),
     DECOMPOSED,
     OP_INPUTS(5, 5, "TSTST"),
     OP_OUTPUTS(1, 1, "T"),
     .attributes = softmax_attributes,
     .infer = softmax_infer},
    {.name = "QLinearWhere",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_BROADCAST(0, 1, 4),
     DECOMPOSED,
     OP_INPUTS(9, 9, "CTSTTSTST"),
     OP_OUTPUTS(1, 1, "T"),
     .infer = where_infer},
    {.name = "QEmbedLayerNormalization",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_AT("00.....0", "0"),
     DECOMPOSED,
     OP_INPUTS(1, 18, "IITTTTTISSSSSTTTTT"),
     OP_OUTPUTS(1, 2, "SI"),
     .attributes = embed_attributes,
     .infer = embed_infer},
    {.name = "DynamicQuantizeLSTM",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_NEVER("it finds one scale for all rows together"),
     DECOMPOSED,
     OP_INPUTS(3, 12, "SBBSISSSSBSB"),
     OP_OUTPUTS(0, 3, "SSS"),
     .attributes = lstm_attributes,
     .check = lstm_check,
     .infer = lstm_infer,
     .param = &recurrent_lstm},
    {.name = "NhwcMaxPool",
     .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_FIRST,
     DECOMPOSED,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .attributes = pool_attributes,
     .check = window_check,
     .infer = max_pool_infer},
};
const size_t n_op_rows_quantized = sizeof op_rows_quantized / sizeof *op_rows_quantized;
