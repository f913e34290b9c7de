/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers DFT (ONNX 17 and 20) and STFT (ONNX 17) to Stockham's mixed-radix FFT: one launch of
 * cl/math/dft.cl for each factor of the transform's length n. A pass does n operations per unit of
 * its radix, so that the work is n * (sum of n's factors): n log n for powers of two and other
 * smooth lengths, n^2 for a prime.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>

#define MAX_LENGTH ((int64_t)1 << 27) /* positions and angles of a line fit 32 bits */

/* A batch of one-dimensional transforms of length n: `lines` of them, line i at outer index i /
 * inner and inner index i % inner. Strides are in real or complex elements, as x_parts and y_parts
 * say.
 *
 *   inverse   an inverse transform, which divides by n
 *   mirror    the input has only elements 0 to n / 2; the others are their conjugates
 *   windowed  the input is multiplied by `window`
 *   n_in      elements of an input line; zeros follow up to n
 *   n_out     elements of an output line that are written
 *   x_parts, y_parts  1 for real elements, 2 for complex ones
 *   x_outer, x_inner, x_step  input strides of the outer index, the inner index and the element
 *   y_outer, y_inner, y_step  the same for the output */
typedef struct dft_job {
    clg_dtype dtype;
    int64_t lines, inner, n;
    bool inverse, mirror, windowed;
    int64_t n_in, x_parts, x_outer, x_inner, x_step;
    int64_t n_out, y_parts, y_outer, y_inner, y_step;
    operand window;
} dft_job;

/* ---- passes ---------------------------------------------------------------------------------- */

static clg_dtype number_dtype(clg_dtype dtype)
{
    return dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
}

/* Returns the radix of the next pass for the remaining factor `rest` of the length: 4 while it
 * divides, then 2, then the smallest odd prime; 1 if rest is 1. */
static int64_t next_radix(int64_t rest)
{
    if (rest % 4 == 0) return 4;
    if (rest % 2 == 0) return 2;
    for (int64_t p = 3; p * p <= rest; p += 2)
        if (rest % p == 0) return p;
    return rest;
}

static const char *dft_prelude(lower_context *c, const dft_job *j, int64_t radix, bool first,
                               bool last)
{
    return prelude_text(&c->build, "P_RADIX=%d P_FIRST=%d P_LAST=%d P_T=%d P_VEC=1",
                        radix == 2 || radix == 4 ? (int)radix : 0, first, last, (int)j->dtype);
}

/* Appends one pass, which reads `from` and writes `to`; l is the product of the radices of the
 * earlier passes. */
static void add_pass(lower_context *c, candidate *impl, const dft_job *j, operand from, operand to,
                     operand table, int64_t l, int64_t radix)
{
    const bool first = l == 1, last = l * radix == j->n, butterfly = radix == 2 || radix == 4;
    const clg_dtype number = number_dtype(j->dtype);
    step_builder *b = &c->build;
    step *s = step_kernel(b, impl, "dft", "dft_pass", dft_prelude(c, j, radix, first, last));
    STEP_BUFFERS(b, s, {from, first ? j->dtype : number}, {to, last ? j->dtype : number},
                 {table, number}, {j->windowed ? j->window : operand_input(0), j->dtype});
    STEP_INTS(b, s, j->lines, j->inner, j->n, l, radix);
    step_arg_float(b, s, j->inverse ? 1 : -1);
    STEP_INTS(b, s, j->n_in, j->x_parts, j->mirror, j->windowed);
    STEP_LONGS(b, s, j->x_outer, j->x_inner, j->x_step);
    STEP_INTS(b, s, j->n_out, j->y_parts, j->inverse ? j->n : 1);
    STEP_LONGS(b, s, j->y_outer, j->y_inner, j->y_step);
    s->flops = 8.0 * (double)j->lines * (double)j->n * (double)radix;
    s->bytes = 4.0 * (double)j->lines * (double)j->n * (double)dtype_size(number);
    const int64_t items = butterfly ? j->n / radix : j->n;
    work_range_rows(c, s, items, j->lines);
}

static clg_status add_transform(lower_context *c, const dft_job *j)
{
    const clg_dtype number = number_dtype(j->dtype);
    step_builder *b = &c->build;
    size_t size_bytes;
    CLG_TRY(work_check_dtype(c, j->dtype));
    candidate *impl = step_candidate(b, "dft");
    if (j->lines == 0) return CLG_OK;
    if (j->lines > INT64_MAX / 16 / j->n || !dtype_bytes(number, 2 * j->n * j->lines, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    const operand table = step_scratch(b, impl, (size_t)j->n * 2 * dtype_size(number));
    step *s = step_kernel(b, impl, "dft", "dft_table", dft_prelude(c, j, 2, false, false));
    step_arg_buffer(b, s, table, number);
    step_arg_int(b, s, j->n);
    step_arg_float(b, s, j->inverse ? 1 : -1);
    work_range_1d(c, s, j->n, 64);
    operand lines[2] = {table, table}, from = operand_input(0);
    bool made[2] = {false, false};
    for (int64_t l = 1, side = 0; l == 1 || l < j->n; side = 1 - side) {
        const int64_t radix = next_radix(j->n / l);
        operand to = operand_output(0);
        if (l * radix != j->n) {
            if (!made[side]) lines[side] = step_scratch(b, impl, size_bytes);
            made[side] = true;
            to = lines[side];
        }
        add_pass(c, impl, j, from, to, table, l, radix);
        if (l * radix == j->n) break;
        l *= radix;
        from = to;
    }
    return CLG_OK;
}

/* ---- DFT ------------------------------------------------------------------------------------- */

/* Sets *out to the scalar in input i, on whose value the output's shape depends, or to `fallback`
 * if the input is absent. Returns false while the value is unknown, or with *status set after an
 * error. */
static bool need_scalar(op_context *c, size_t i, int64_t fallback, int64_t *out, clg_status *status)
{
    *out = fallback;
    if (!op_has_input(c, i)) return true;
    const tensor *t = op_need(c, i);
    if (!t) return false;
    if (t->n_elements == 1)
        *out = tensor_get_int(t, 0);
    else
        *status = op_error(c, CLG_ERROR_SHAPE, "input %zu must be a scalar", i);
    return *status == CLG_OK;
}

/* Reads the axis of a DFT: an attribute before opset 20, an input since. Returns false while it is
 * unknown, or with *status set after an error. */
static bool dft_axis(op_context *c, int rank, int *out_axis, clg_status *status)
{
    int64_t given = node_int(c->node, "axis", 1);
    if (c->row->max_inputs > 2 && !need_scalar(c, 2, -2, &given, status)) return false;
    if (shape_axis(given, rank, "axis", out_axis) != CLG_OK || *out_axis == rank - 1) {
        *status = op_error(c, CLG_ERROR_SHAPE, "axis %" PRId64 " is not one of a signal of rank %d",
                           given, rank);
        return false;
    }
    return true;
}

/* Reads the axis and the length of the transform. Returns false while they are unknown, or with
 * *status set after an error. */
static bool dft_read(op_context *c, int *out_axis, int64_t *out_n, clg_status *status)
{
    const shape *x = &op_input(c, 0)->dims;
    const bool onesided = node_int(c->node, "onesided", 0) != 0,
               inverse = node_int(c->node, "inverse", 0) != 0;
    if (x->rank < 2) {
        *status = op_error(c, CLG_ERROR_SHAPE, "a signal of rank %d has no axis", x->rank);
        return false;
    }
    const int64_t parts = x->dims[x->rank - 1];
    if (parts != DIM_UNKNOWN && (onesided ? parts != (inverse ? 2 : 1) : parts < 1 || parts > 2)) {
        *status =
            op_error(c, CLG_ERROR_SHAPE,
                     "the last dimension is %" PRId64 "; real signals have 1, complex ones 2%s",
                     parts, onesided ? ", and onesided goes from one to the other" : "");
        return false;
    }
    if (!dft_axis(c, x->rank, out_axis, status)) return false;
    const int64_t there = x->dims[*out_axis],
                  whole = onesided && inverse && there != DIM_UNKNOWN ? 2 * (there - 1) : there;
    if (!need_scalar(c, 1, whole, out_n, status)) return false;
    if (!op_has_input(c, 1) && whole == DIM_UNKNOWN) return false;
    if (*out_n < 1 || *out_n > MAX_LENGTH)
        *status = op_error(c, CLG_ERROR_SHAPE, "a length of %" PRId64 " is not supported", *out_n);
    return *status == CLG_OK;
}

static clg_status dft_infer(op_context *c)
{
    const bool onesided = node_int(c->node, "onesided", 0) != 0,
               inverse = node_int(c->node, "inverse", 0) != 0;
    int axis = -1;
    int64_t n;
    clg_status status = CLG_OK;
    const bool known = dft_read(c, &axis, &n, &status);
    if (status != CLG_OK || axis < 0) return status;
    shape y = op_input(c, 0)->dims;
    y.dims[axis] = !known ? DIM_UNKNOWN : onesided && !inverse ? n / 2 + 1 : n;
    y.dims[y.rank - 1] = onesided && inverse ? 1 : 2;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* Returns an inference context over the inputs of a lowering context, so that lowering reads axis
 * and lengths by the functions of inference. facts: storage for the inputs of the result. */
static op_context look_again(const lower_context *c, value_fact facts[4])
{
    for (size_t i = 0; i < c->n_inputs && i < 4; i++)
        facts[i] = (value_fact){
            .dtype = c->inputs[i].dtype, .dims = c->inputs[i].dims, .known = c->inputs[i].known};
    return (op_context){.node = c->node,
                        .row = c->row,
                        .inputs = facts,
                        .n_inputs = c->n_inputs < 4 ? c->n_inputs : 4};
}

static clg_status dft_lower(lower_context *c)
{
    value_fact facts[4];
    op_context look = look_again(c, facts);
    const shape *x = &lower_input(c, 0)->dims, *y = &c->outputs[0].dims;
    clg_status status = CLG_OK;
    int axis;
    int64_t n, outer = 1, inner = 1;
    if (!dft_read(&look, &axis, &n, &status))
        return status != CLG_OK ? status : lower_error(c, CLG_ERROR_INTERNAL, "has no length");
    for (int i = 0; i < axis; i++) outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank - 1; i++) inner *= x->dims[i];
    const bool inverse = node_int(c->node, "inverse", 0) != 0;
    const dft_job j = {.dtype = lower_input(c, 0)->dtype,
                       .lines = outer * inner,
                       .inner = inner,
                       .n = n,
                       .inverse = inverse,
                       .mirror = inverse && node_int(c->node, "onesided", 0) != 0,
                       .n_in = x->dims[axis],
                       .x_parts = x->dims[x->rank - 1],
                       .x_outer = x->dims[axis] * inner,
                       .x_inner = 1,
                       .x_step = inner,
                       .n_out = y->dims[axis],
                       .y_parts = y->dims[y->rank - 1],
                       .y_outer = y->dims[axis] * inner,
                       .y_inner = 1,
                       .y_step = inner};
    return add_transform(c, &j);
}

/* ---- STFT ------------------------------------------------------------------------------------ */

/* Reads the number of elements from frame to frame (hop) and that of a frame. Returns false while
 * they are unknown, or with *status set after an error. */
static bool stft_read(op_context *c, int64_t *out_hop, int64_t *out_length, clg_status *status)
{
    const shape *x = &op_input(c, 0)->dims, *window = &op_input(c, 2)->dims;
    const bool onesided = node_int(c->node, "onesided", 1) != 0;
    if (x->rank != 3 || dims_differ(x->dims[2], 1) == (onesided || dims_differ(x->dims[2], 2))) {
        if (x->rank != 3 || x->dims[2] != DIM_UNKNOWN) {
            *status = op_error(c, CLG_ERROR_SHAPE, "the signal must be [batch, length, 1]%s",
                               onesided ? ", real, for onesided" : " or [batch, length, 2]");
            return false;
        }
    }
    if (op_has_input(c, 2) && window->rank != 1) {
        *status = op_error(c, CLG_ERROR_SHAPE, "the window has rank %d", window->rank);
        return false;
    }
    const int64_t there = op_has_input(c, 2) ? window->dims[0] : x->dims[1];
    const bool hop = need_scalar(c, 1, 1, out_hop, status);
    if (*status != CLG_OK || !need_scalar(c, 3, there, out_length, status) || !hop ||
        (!op_has_input(c, 3) && there == DIM_UNKNOWN))
        return false;
    if (*out_hop < 1 || *out_hop > INT32_MAX || *out_length < 1 || *out_length > MAX_LENGTH ||
        (op_has_input(c, 2) && dims_differ(*out_length, there)) ||
        (x->dims[1] != DIM_UNKNOWN && x->dims[1] < *out_length))
        *status = op_error(c, CLG_ERROR_SHAPE,
                           "frames of %" PRId64 ", %" PRId64 " apart, do not fit signal and window",
                           *out_length, *out_hop);
    return *status == CLG_OK;
}

static clg_status stft_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    int64_t hop, n;
    clg_status status = CLG_OK;
    if (!stft_read(c, &hop, &n, &status)) return status;
    const int64_t frames = x->dims[1] == DIM_UNKNOWN ? DIM_UNKNOWN : (x->dims[1] - n) / hop + 1;
    const bool onesided = node_int(c->node, "onesided", 1) != 0;
    const shape y = {.rank = 4, .dims = {x->dims[0], frames, onesided ? n / 2 + 1 : n, 2}};
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status stft_lower(lower_context *c)
{
    value_fact facts[4];
    op_context look = look_again(c, facts);
    const shape *x = &lower_input(c, 0)->dims, *y = &c->outputs[0].dims;
    clg_status status = CLG_OK;
    int64_t hop, n;
    if (!stft_read(&look, &hop, &n, &status))
        return status != CLG_OK ? status : lower_error(c, CLG_ERROR_INTERNAL, "has no frames");
    const dft_job j = {.dtype = lower_input(c, 0)->dtype,
                       .lines = y->dims[0] * y->dims[1],
                       .inner = y->dims[1],
                       .n = n,
                       .windowed = lower_has_input(c, 2),
                       .window = operand_input(2),
                       .n_in = n,
                       .x_parts = x->dims[2],
                       .x_outer = x->dims[1],
                       .x_inner = hop,
                       .x_step = 1,
                       .n_out = y->dims[2],
                       .y_parts = 2,
                       .y_outer = y->dims[1] * y->dims[2],
                       .y_inner = y->dims[2],
                       .y_step = 1};
    return add_transform(c, &j);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)},
    {'L', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
    {'A', DTYPE_BIT(CLG_INT64)},
    {0}};
static const op_attribute dft_17[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY},
                                      {"inverse", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                      {"onesided", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                      {0}};
static const op_attribute dft_20[] = {{"inverse", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                      {"onesided", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                      {0}};
static const op_attribute stft_17[] = {{"onesided", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};

#define TRANSFORM OP_OUTPUTS(1, 1, "T"), .types = types

const op_row op_rows_dft[] = {
    {.name = "DFT",
     .grad = GRAD_BY(grad_pass_dft),
     .since = 17,
     .until = 19,
     OP_INPUTS(1, 2, "TL"),
     .attributes = dft_17,
     .infer = dft_infer,
     .lower = dft_lower,
     TRANSFORM},
    {.name = "DFT",
     .grad = GRAD_BY(grad_pass_dft),
     .since = 20,
     OP_INPUTS(1, 3, "TLA"),
     .attributes = dft_20,
     .infer = dft_infer,
     .lower = dft_lower,
     TRANSFORM},
    {.name = "STFT",
     .grad = GRAD_BY(grad_pass_stft),
     .batch = BATCH_FIRST,
     .since = 17,
     OP_INPUTS(2, 4, "TLTL"),
     .attributes = stft_17,
     .infer = stft_infer,
     .lower = stft_lower,
     TRANSFORM},
};
const size_t n_op_rows_dft = sizeof op_rows_dft / sizeof *op_rows_dft;
