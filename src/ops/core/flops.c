/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts operations by a table with a formula for each operator. Operators without an entry:
 * pointwise ones count one per output element, reductions one per input element, others 0.
 */
#include "ops/core/flops.h"

#include "ops/matmul/einsum.h"

#include <string.h>

typedef struct counting {
    const node *node;
    const value_fact *facts;
} counting;

static const value_fact *fact_at(const counting *c, const value_id *ids, size_t n_ids, size_t i)
{
    return i < n_ids && ids[i] != VALUE_NONE ? &c->facts[ids[i]] : NULL;
}

static double elements(const value_fact *f)
{
    int64_t n;
    if (!f || !shape_is_known(&f->dims) || shape_n_elements(&f->dims, &n) != CLG_OK) return 0;
    return (double)n;
}

static const value_fact *input(const counting *c, size_t i)
{
    return fact_at(c, c->node->inputs, c->node->n_inputs, i);
}
static double in_elements(const counting *c, size_t i) { return elements(input(c, i)); }

static double out_elements(const counting *c)
{
    return elements(fact_at(c, c->node->outputs, c->node->n_outputs, 0));
}

/* Returns the number of elements of input i per index of its first axis. For the filter of a
 * convolution this is the number of multiply-adds per output element. */
static double row_elements(const counting *c, size_t i)
{
    const value_fact *f = input(c, i);
    return f && f->dims.rank > 0 && f->dims.dims[0] > 0 ? elements(f) / (double)f->dims.dims[0] : 0;
}

/* Returns the size of an axis of input i, counted from the end when negative. */
static double dim(const counting *c, size_t i, int axis)
{
    const value_fact *f = input(c, i);
    if (!f || !shape_is_known(&f->dims)) return 0;
    int at = axis < 0 ? f->dims.rank + axis : axis;
    return at >= 0 && at < f->dims.rank ? (double)f->dims.dims[at] : 0;
}

/* Counts a convolution of x: [N,C,...] with input w: [M,C/group,...]; y: [N,M,...]. */
static double conv(const counting *c, size_t w)
{
    double bias = w == 1 && c->node->n_inputs > 2 ? out_elements(c) : 0;
    return 2 * out_elements(c) * row_elements(c, w) + bias;
}

/* Counts a transposed convolution. x: [N,C,...], w: [C,M/group,...]: each element of x is
 * multiplied by all elements of w for its channel. */
static double conv_transpose(const counting *c, size_t w)
{
    double bias = c->node->n_inputs > 2 ? out_elements(c) : 0;
    return 2 * in_elements(c, 0) * row_elements(c, w) + bias;
}

/* Counts a Gemm with y: [M,N] as 2 M N K operations, and M N for an addition of C. K is the size of
 * the axis of input a that is summed over. */
static double gemm(const counting *c, size_t a)
{
    double k = dim(c, a, node_int(c->node, "transA", 0) ? 0 : 1);
    return 2 * out_elements(c) * k + (c->node->n_inputs > 2 ? out_elements(c) : 0);
}

static double matmul(const counting *c, size_t a) { return 2 * out_elements(c) * dim(c, a, -1); }

static double pool(const counting *c, size_t per_element)
{
    size_t rank;
    const int64_t *window = node_ints(c->node, "kernel_shape", &rank);
    double area = 1;
    for (size_t i = 0; i < rank; i++) area *= (double)window[i];
    return out_elements(c) * area * (double)per_element;
}

/* Counts the matrix products of RNN, GRU and LSTM: x: [S,B,I] by W, input r - 1: [directions,
 * gates * H, I], and the state by R, input r: [directions, gates * H, H]. */
static double recurrent(const counting *c, size_t r)
{
    return 2 * dim(c, 0, 0) * dim(c, 0, 1) * (in_elements(c, r - 1) + in_elements(c, r));
}

/* Counts determinants of x: [..., n, n] by LU decomposition: 2/3 n^3 each. */
static double determinant(const counting *c, size_t i)
{
    return in_elements(c, i) * dim(c, i, -1) * 2 / 3;
}

/* Counts one operation per operand for each point of the space of all indices of the equation.
 * Returns 0 for more than `max` operands, since then the count depends on the order of contraction,
 * which is chosen later. */
static double einsum(const counting *c, size_t max)
{
    einsum_equation e;
    const shape *shapes[2];
    double n = (double)c->node->n_inputs;
    if (c->node->n_inputs > max) return 0;
    for (size_t i = 0; i < c->node->n_inputs; i++) {
        const value_fact *f = input(c, i);
        if (!f || !shape_is_known(&f->dims)) return 0;
        shapes[i] = &f->dims;
    }
    if (einsum_read(c->node, shapes, &e) != CLG_OK) return 0;
    for (int l = 0; l < EINSUM_LABELS; l++) n *= (double)e.sizes[l];
    return n;
}

static double per_input(const counting *c, size_t operations)
{
    return in_elements(c, 0) * (double)operations;
}
static double per_output(const counting *c, size_t operations)
{
    return out_elements(c) * (double)operations;
}

static const struct formula {
    const char *op_type;
    double (*count)(const counting *c, size_t number);
    size_t number; /* second argument of the function: see there */
} formulas[] = {
    {"Conv", conv, 1},
    {"ConvInteger", conv, 1},
    {"QLinearConv", conv, 3},
    {"DeformConv", conv, 1},
    {"ConvTranspose", conv_transpose, 1},
    {"Gemm", gemm, 0},
    {"QGemm", gemm, 0},
    {"MatMul", matmul, 0},
    {"MatMulInteger", matmul, 0},
    {"QLinearMatMul", matmul, 0},
    {"MatMulNBits", matmul, 0},
    {"MatMulIntegerToFloat", matmul, 0},
    {"DynamicQuantizeMatMul", matmul, 0},
    {"Einsum", einsum, 2},
    {"Det", determinant, 0},
    {"RNN", recurrent, 2},
    {"GRU", recurrent, 2},
    {"LSTM", recurrent, 2},
    {"DynamicQuantizeLSTM", recurrent, 2},
    {"AveragePool", pool, 1},
    {"MaxPool", pool, 1},
    {"NhwcMaxPool", pool, 1},
    {"LpPool", pool, 2},
    {"GlobalAveragePool", per_input, 1},
    {"GlobalMaxPool", per_input, 1},
    {"GlobalLpPool", per_input, 2},
    {"BatchNormalization", per_input, 2},    /* scale and shift, folded */
    {"InstanceNormalization", per_input, 7}, /* mean, variance (2), minus, times, scale, shift */
    {"LayerNormalization", per_input, 7},
    {"GroupNormalization", per_input, 7},
    {"MeanVarianceNormalization", per_input, 5},
    {"RMSNormalization", per_input, 4},
    {"LpNormalization", per_input, 3},
    {"LRN", per_input, 6},
    {"Softmax", per_input, 5}, /* maximum, minus, exp, sum, times */
    {"QLinearSoftmax", per_input, 5},
    {"LogSoftmax", per_input, 5},
    {"Hardmax", per_input, 1},
    {"SoftmaxCrossEntropyLoss", per_input, 5},
    {"ArgMax", per_input, 1},
    {"ArgMin", per_input, 1},
    {"CumSum", per_input, 1},
    {"CumProd", per_input, 1},
    {"Resize", per_output, 4},
    {"Upsample", per_output, 4},
};

/* Returns whether a pointwise operator only converts or selects elements, which counts as 0. */
static bool only_moves(const char *op_type)
{
    static const char *const names[] = {"Cast", "CastLike", "Identity", "Where", "BitCast"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(op_type, names[i]) == 0) return true;
    }
    return false;
}

static bool is_of_family(const op_row *row, const char *name)
{
    for (size_t f = 0; f < n_op_families; f++) {
        const op_family *family = &op_families[f];
        if (strcmp(family->name, name) == 0)
            return row && row >= family->rows && row < family->rows + *family->n_rows;
    }
    return false;
}

double flops_of_node(const node *n, const value_fact *facts)
{
    const counting c = {n, facts};
    if (!n->op) return 0; /* not supported: its inputs and attributes were not checked */
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++) {
        if (strcmp(n->op_type, formulas[i].op_type) == 0)
            return formulas[i].count(&c, formulas[i].number);
    }
    if (is_of_family(n->op, "pointwise") && !only_moves(n->op_type)) return per_output(&c, 1);
    if (is_of_family(n->op, "reduce")) return per_input(&c, 1);
    return 0;
}
