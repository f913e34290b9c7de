/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix (ONNX 17). Kernels:
 * cl/math/signal.cl.
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <math.h>

/* A window function: (a + b cos(x) + c cos(2x)) / over, for x from 0 to 2 pi. */
typedef struct window_row {
    int a, b, c, over;
} window_row;

static const window_row hann = {1, -1, 0, 2}, hamming = {25, -21, 0, 46},
                        blackman = {42, -50, 8, 100};

#define MAKEABLE (DTYPES_NUMERIC & ~DTYPE_BIT(CLG_BFLOAT16))

static clg_dtype output_dtype(const node *n)
{
    return (clg_dtype)node_int(n, "output_datatype", CLG_FLOAT32);
}

/* ---- windows --------------------------------------------------------------------------------- */

static clg_status window_infer(op_context *c)
{
    shape y = {.rank = 1, .dims = {DIM_UNKNOWN}};
    const tensor *size = op_need(c, 0);
    if (size && size->n_elements != 1) return op_error(c, CLG_ERROR_SHAPE, "size must be a scalar");
    if (size) y.dims[0] = tensor_get_int(size, 0);
    if (size && (y.dims[0] < 0 || y.dims[0] > INT32_MAX))
        return op_error(c, CLG_ERROR_SHAPE, "a window of %" PRId64 " numbers is not supported",
                        y.dims[0]);
    fact_set(&c->outputs[0], output_dtype(c->node), &y);
    return CLG_OK;
}

static clg_status window_lower(lower_context *c)
{
    const window_row *w = c->row->param;
    const clg_dtype dtype = c->outputs[0].dtype;
    const int64_t n = c->outputs[0].dims.dims[0],
                  period = node_int(c->node, "periodic", 1) != 0 ? n : n - 1;
    CLG_TRY(work_check_dtype(c, dtype));
    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "cosine_window"), "signal", "cosine_window",
                          prelude_text(b, "P_T=%d P_VEC=1", (int)dtype));
    step_arg_buffer(b, s, operand_output(0), dtype);
    STEP_INTS(b, s, n, period, w->a, w->b, w->c, w->over);
    work_range_1d(c, s, n, 16);
    return CLG_OK;
}

/* ---- MelWeightMatrix ------------------------------------------------------------------------- */

enum mel_input { MEL_COLUMNS, DFT_LENGTH, SAMPLE_RATE, LOW_EDGE, HIGH_EDGE, N_MEL_INPUTS };
#define MEL_AT_ONCE 16 /* columns (bands) per launch; it has two edges more */

static clg_status mel_infer(op_context *c)
{
    const tensor *t[N_MEL_INPUTS];
    shape y = {.rank = 2, .dims = {DIM_UNKNOWN, DIM_UNKNOWN}};
    bool known = true;
    for (size_t i = 0; i < N_MEL_INPUTS; i++) {
        t[i] = op_need(c, i);
        known = known && t[i];
        if (t[i] && t[i]->n_elements != 1)
            return op_error(c, CLG_ERROR_SHAPE, "input %zu must be a scalar", i);
    }
    fact_set(&c->outputs[0], output_dtype(c->node), &y);
    if (!known) return CLG_OK;
    const int64_t columns = tensor_get_int(t[MEL_COLUMNS], 0),
                  length = tensor_get_int(t[DFT_LENGTH], 0),
                  rate = tensor_get_int(t[SAMPLE_RATE], 0);
    const double low = tensor_get_float(t[LOW_EDGE], 0), high = tensor_get_float(t[HIGH_EDGE], 0);
    if (columns < 0 || columns > INT32_MAX / 4 || length < 0 || length > INT32_MAX / 4 ||
        rate < 1 || !(low >= 0) || !(high >= low) || !isfinite(high))
        return op_error(c, CLG_ERROR_SHAPE,
                        "%" PRId64 " bands of %g to %g Hz over transforms of %" PRId64
                        " at %" PRId64 " Hz cannot be made",
                        columns, low, high, length, rate);
    y.dims[0] = length / 2 + 1;
    y.dims[1] = columns;
    fact_set(&c->outputs[0], output_dtype(c->node), &y);
    return CLG_OK;
}

/* Returns the DFT bin of edge i, 0 to columns + 1: column i is a triangle that rises from edge i to
 * edge i + 1 and falls to edge i + 2. Edges are equally spaced on the mel scale. */
static int64_t mel_edge(const lower_context *c, int64_t i)
{
    const tensor *t[N_MEL_INPUTS];
    for (size_t k = 0; k < N_MEL_INPUTS; k++) t[k] = c->inputs[k].known;
    const double n = (double)tensor_get_int(t[MEL_COLUMNS], 0) + 2;
    const double low = 2595 * log1p(tensor_get_float(t[LOW_EDGE], 0) / 700) / log(10),
                 high = 2595 * log1p(tensor_get_float(t[HIGH_EDGE], 0) / 700) / log(10);
    const double mel = (double)i * ((high - low) / n) + low,
                 hertz = 700 * expm1(mel / 2595 * log(10));
    const double bin = floor(((double)tensor_get_int(t[DFT_LENGTH], 0) + 1) * hertz /
                             (double)tensor_get_int(t[SAMPLE_RATE], 0));
    return bin < INT32_MAX ? (int64_t)bin : INT32_MAX;
}

static clg_status mel_lower(lower_context *c)
{
    const clg_dtype dtype = c->outputs[0].dtype;
    const int64_t bins = c->outputs[0].dims.dims[0], columns = c->outputs[0].dims.dims[1];
    CLG_TRY(work_check_dtype(c, dtype));
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "mel_weights");
    for (int64_t first = 0; first < columns; first += MEL_AT_ONCE) {
        const int64_t count = columns - first < MEL_AT_ONCE ? columns - first : MEL_AT_ONCE;
        step *s = step_kernel(b, impl, "signal", "mel_weights",
                              prelude_text(b, "P_T=%d P_VEC=1", (int)dtype));
        step_arg_buffer(b, s, operand_output(0), dtype);
        STEP_INTS(b, s, bins, columns, first, count);
        for (int64_t i = 0; i < MEL_AT_ONCE + 2; i++)
            step_arg_int(b, s, mel_edge(c, first + (i < count + 2 ? i : count + 1)));
        work_range_2d(c, s, bins, 16, count, 1);
    }
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define INDEX (DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64))
static const op_types types[] = {{'I', INDEX}, {'F', DTYPES_FLOAT}, {0}};
static const op_attribute window_attributes[] = {
    {"output_datatype", ATTRIBUTE_INT, false, OP_DTYPES(MAKEABLE)},
    {"periodic", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {0}};
static const op_attribute mel_attributes[] = {
    {"output_datatype", ATTRIBUTE_INT, false, OP_DTYPES(MAKEABLE)}, {0}};

#define SIGNAL .since = 17, OP_OUTPUTS(1, 1, "?"), .types = types
#define WINDOW(row_name, row)                                                                      \
    {                                                                                              \
        .name = row_name, .grad = GRAD_ZERO, OP_INPUTS(1, 1, "I"),                                 \
        .attributes = window_attributes, .infer = window_infer, .lower = window_lower,             \
        .param = &(row), SIGNAL                                                                    \
    }

const op_row op_rows_signal[] = {
    WINDOW("HannWindow", hann),
    WINDOW("HammingWindow", hamming),
    WINDOW("BlackmanWindow", blackman),
    {.name = "MelWeightMatrix",
     .grad = GRAD_LATER,
     OP_INPUTS(5, 5, "IIIFF"),
     .attributes = mel_attributes,
     .infer = mel_infer,
     .lower = mel_lower,
     SIGNAL},
};
const size_t n_op_rows_signal = sizeof op_rows_signal / sizeof *op_rows_signal;
