/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds models of quantised operators from expressions. See qdq_expression.h.
 */
#include "support/cases/qdq_expression.h"
#include "support/fixtures/sized_data.h"

#include "support/cases/quantized_case.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

/* Describes an operand. The scale for index i of `axis` is scale * (1 + i / 8). */
typedef struct operand_row {
    char letter;
    clg_dtype dtype; /* CLG_FLOAT32: not quantised */
    bool constant;
    int rank;
    int64_t dims[4];
    double scale;
    int zero, axis; /* axis: of the scales; -1: one scale */
} operand_row;

#define A_SCALE 0.021
#define W_SCALE 0.0071
static const operand_row operands[] = {
    {'a', CLG_UINT8, false, 4, {1, 6, 7, 9}, A_SCALE, 119, -1},
    {'e', CLG_UINT8, false, 4, {1, 6, 7, 9}, 0.033, 97, -1},
    {'s', CLG_INT8, false, 4, {1, 6, 7, 9}, 0.019, -7, -1},
    {'l', CLG_INT16, false, 4, {1, 6, 7, 9}, 0.001, 0, -1},
    {'t', CLG_INT8, true, 1, {9}, 0.017, 3, -1},
    {'w', CLG_INT8, true, 4, {8, 6, 3, 3}, W_SCALE, 0, -1},
    {'v', CLG_UINT8, true, 4, {8, 6, 3, 3}, 0.0057, 126, -1},
    {'c', CLG_INT8, true, 4, {8, 6, 3, 3}, W_SCALE, 0, 0},
    {'g', CLG_INT8, true, 4, {6, 1, 3, 3}, 0.009, 0, -1},
    {'h', CLG_FLOAT32, true, 4, {8, 6, 3, 3}, 1, 0, -1},
    {'i', CLG_INT32, true, 1, {8}, A_SCALE *W_SCALE, 0, -1},
    {'j', CLG_INT32, true, 1, {8}, A_SCALE *W_SCALE, 0, 0},
    {'k', CLG_INT32, true, 1, {8}, 1e6, 0, -1},
    {'f', CLG_FLOAT32, true, 1, {8}, 1, 0, -1},
    {'m', CLG_UINT8, false, 2, {5, 33}, 0.013, 121, -1},
    {'r', CLG_UINT8, false, 2, {33, 5}, 0.013, 121, -1},
    {'n', CLG_INT8, true, 2, {33, 7}, 0.011, 0, -1},
    {'o', CLG_INT8, true, 2, {7, 33}, 0.011, 0, 0},
    {'u', CLG_INT8, true, 2, {33, 7}, 0.011, 0, 0},
    {'p', CLG_FLOAT32, true, 1, {7}, 1, 0, -1},
    {'q', CLG_FLOAT32, false, 2, {5, 33}, 1, 0, -1},
    {'x', CLG_UINT8, false, 2, {1, 40000}, 0.01, 0, -1},
    {'y', CLG_UINT8, true, 2, {40000, 2}, 0.01, 0, -1},
};

/* Quantisation parameters of results, by digit: dtype, scale and zero point. */
static const operand_row results[] = {
    {'0', CLG_UINT8, false, 0, {0}, 0.04713, 131, -1}, {'1', CLG_INT8, false, 0, {0}, 0.051, 5, -1},
    {'2', CLG_UINT8, false, 0, {0}, 0.049, 0, -1},     /* all non-negative */
    {'3', CLG_UINT8, false, 0, {0}, 6.0 / 255, 0, -1}, /* represents 0 to 6 */
    {'4', CLG_UINT8, false, 0, {0}, 0.0001, 128, -1},  /* finer steps than those of the sums */
};

static const operand_row *find_row(char letter)
{
    for (size_t i = 0; i < COUNT(operands); i++)
        if (operands[i].letter == letter) return &operands[i];
    for (size_t i = 0; i < COUNT(results); i++)
        if (results[i].letter == letter) return &results[i];
    fail_msg("there is no operand '%c'", letter);
    return NULL;
}

/* Returns the data of an operand, which are the same in each call. */
static const double *numbers_of(const operand_row *o)
{
    static double *kept[COUNT(operands)];
    const size_t at = (size_t)(o - operands);
    const int64_t n = run_node_count(o->rank, o->dims);
    if (kept[at]) return kept[at];
    kept[at] = o->dtype == CLG_UINT8 || o->dtype == CLG_INT8
                   ? quantized_bytes(n, o->dtype == CLG_INT8)
                   : run_node_random(n);
    for (int64_t i = 0; i < n; i++)
        if (o->dtype == CLG_INT32 || o->dtype == CLG_INT16) kept[at][i] = floor(kept[at][i] * 3000);
    return kept[at];
}

static double scale_of(const operand_row *o, int64_t i)
{
    return (double)(float)(o->scale * (1 + (o->axis < 0 ? 0 : (double)i / 8)));
}

/* ---- arithmetic in double -------------------------------------------------------------------- */

/* A value of the model. v: its elements in double; NULL where the reference does not compute it. */
typedef struct term {
    char name[16];
    int rank;
    int64_t dims[4];
    double *v;
} term;

typedef struct graph_attribute {
    char name[32], text[64];
    int64_t list[8];
    size_t count;
} graph_attribute;

typedef struct writing {
    clg_builder *b;
    const char *at;
    qdq_expression *e;
    int n_names;
    graph_attribute attributes[8];
    size_t n_attributes;
    term terms[4];
    size_t n_terms;
    term *dequantized; /* operands that have been dequantised, indexed by letter */
} writing;

static int64_t attribute_int(const writing *w, const char *name, size_t i, int64_t fallback)
{
    for (size_t k = 0; k < w->n_attributes; k++)
        if (strcmp(w->attributes[k].name, name) == 0) return w->attributes[k].list[i];
    return fallback;
}

static void shape_term(term *y, int rank, const int64_t *dims)
{
    y->rank = rank;
    memcpy(y->dims, dims, (size_t)rank * sizeof *dims);
    y->v = run_node_zeros(run_node_count(rank, dims));
}

static int64_t size_of(const term *t) { return run_node_count(t->rank, t->dims); }

/* Returns the sum of products of a window of x with the kernel w, over both spatial axes and the
 * channels of a group; or, if w is NULL, the mean of one channel. */
static double window_sum(const writing *p, const term *x, const term *w, const int64_t at[4],
                         const int64_t kernel[2], int64_t from, int64_t channels)
{
    const int64_t *d = x->dims;
    double sum = 0, n = 0;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < kernel[0] * kernel[1]; k++) {
            const int64_t ky = k / kernel[1], kx = k % kernel[1];
            const int64_t y = at[2] * attribute_int(p, "strides", 0, 1) +
                              ky * attribute_int(p, "dilations", 0, 1) -
                              attribute_int(p, "pads", 0, 0),
                          z = at[3] * attribute_int(p, "strides", 1, 1) +
                              kx * attribute_int(p, "dilations", 1, 1) -
                              attribute_int(p, "pads", 1, 0);
            if (y < 0 || z < 0 || y >= d[2] || z >= d[3]) continue;
            const double v = x->v[((at[0] * d[1] + from + c) * d[2] + y) * d[3] + z];
            sum += w ? v * w->v[(at[1] * channels + c) * kernel[0] * kernel[1] + k] : v;
            n++;
        }
    return w ? sum : sum / n;
}

static void compute_window(writing *p, term *y)
{
    const term *x = &p->terms[0], *w = p->n_terms > 1 ? &p->terms[1] : NULL,
               *bias = p->n_terms > 2 ? &p->terms[2] : NULL;
    int64_t dims[4] = {x->dims[0], w ? w->dims[0] : x->dims[1]}, kernel[2];
    const int64_t channels = w ? w->dims[1] : 1,
                  per_group = dims[1] / (w ? attribute_int(p, "group", 0, 1) : dims[1]);
    for (size_t i = 0; i < 2; i++) {
        kernel[i] = w ? w->dims[2 + i] : attribute_int(p, "kernel_shape", i, 1);
        dims[2 + i] =
            (x->dims[2 + i] + attribute_int(p, "pads", i, 0) + attribute_int(p, "pads", 2 + i, 0) -
             (kernel[i] - 1) * attribute_int(p, "dilations", i, 1) - 1) /
                attribute_int(p, "strides", i, 1) +
            1;
    }
    shape_term(y, 4, dims);
    for (int64_t i = 0; i < size_of(y); i++) {
        const int64_t at[4] = {i / (dims[1] * dims[2] * dims[3]), i / (dims[2] * dims[3]) % dims[1],
                               i / dims[3] % dims[2], i % dims[3]};
        y->v[i] = window_sum(p, x, w, at, kernel, at[1] / per_group * channels, channels) +
                  (bias ? bias->v[at[1]] : 0);
    }
}

static void compute_matmul(writing *p, term *y)
{
    const term *a = &p->terms[0], *b = &p->terms[1];
    const bool transposed = attribute_int(p, "transB", 0, 0) != 0;
    const int64_t k = a->dims[1], n = b->dims[transposed ? 0 : 1];
    shape_term(y, 2, (int64_t[]){a->dims[0], n});
    for (int64_t i = 0; i < size_of(y); i++) {
        y->v[i] = p->n_terms > 2 ? p->terms[2].v[i % n] : 0;
        for (int64_t t = 0; t < k; t++)
            y->v[i] += a->v[i / n * k + t] * b->v[transposed ? i % n * k + t : t * n + i % n];
    }
}

static void compute_transposed(writing *p, term *y)
{
    const term *x = &p->terms[0];
    shape_term(y, 2, (int64_t[]){x->dims[1], x->dims[0]});
    for (int64_t i = 0; i < size_of(y); i++)
        y->v[i] = x->v[i % x->dims[0] * x->dims[1] + i / x->dims[0]];
}

static double compute_element(const writing *p, const char *op, double a, double b)
{
    if (strcmp(op, "Add") == 0) return a + b;
    if (strcmp(op, "Mul") == 0) return a * b;
    if (strcmp(op, "Relu") == 0) return fmax(a, 0);
    if (strcmp(op, "Sigmoid") == 0) return 1 / (1 + exp(-a));
    if (strcmp(op, "LeakyRelu") == 0) return a < 0 ? a * strtod(p->attributes[0].text, NULL) : a;
    return fmin(fmax(a, p->terms[1].v[0]), p->terms[2].v[0]); /* Clip */
}

static void compute_elements(writing *p, const char *op, term *y)
{
    const term *a = &p->terms[0], *b = &p->terms[p->n_terms > 1];
    shape_term(y, a->rank, a->dims);
    for (int64_t i = 0; i < size_of(y); i++)
        y->v[i] = compute_element(p, op, a->v[i], b->v[i % size_of(b)]);
}

static void compute_mean(writing *p, term *y)
{
    const term *x = &p->terms[0];
    const int64_t n = x->dims[2] * x->dims[3];
    shape_term(y, 4, (int64_t[]){x->dims[0], x->dims[1], 1, 1});
    for (int64_t i = 0; i < size_of(x); i++) y->v[i / n] += x->v[i] / (double)n;
}

static void compute(writing *p, const char *op, term *y)
{
    static const char *const elements[] = {"Add", "Mul", "Relu", "Sigmoid", "LeakyRelu", "Clip"};
    for (size_t i = 0; i < p->n_terms; i++)
        if (!p->terms[i].v) return;
    if (strcmp(op, "Conv") == 0 || strcmp(op, "AveragePool") == 0) compute_window(p, y);
    if (strcmp(op, "MatMul") == 0 || strcmp(op, "Gemm") == 0) compute_matmul(p, y);
    if (strcmp(op, "GlobalAveragePool") == 0) compute_mean(p, y);
    if (strcmp(op, "Transpose") == 0 && p->terms[0].rank == 2) compute_transposed(p, y);
    for (size_t i = 0; i < COUNT(elements); i++)
        if (strcmp(op, elements[i]) == 0) compute_elements(p, op, y);
}

/* ---- writing the model ----------------------------------------------------------------------- */

static void new_name(writing *w, char name[16]) { (void)snprintf(name, 16, "v%d", w->n_names++); }

/* Returns the values as elements of a dtype. */
static void *as_bytes(clg_dtype dtype, const double *numbers, int64_t n)
{
    char *bytes = (char *)run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        const double v = numbers[i];
        switch (dtype) {
        case CLG_UINT8: ((uint8_t *)bytes)[i] = (uint8_t)v; break;
        case CLG_INT8: ((int8_t *)bytes)[i] = (int8_t)v; break;
        case CLG_INT16: ((int16_t *)bytes)[i] = (int16_t)v; break;
        case CLG_INT32: ((int32_t *)bytes)[i] = (int32_t)v; break;
        case CLG_INT64: ((int64_t *)bytes)[i] = (int64_t)v; break;
        default: ((float *)bytes)[i] = (float)v; break;
        }
    }
    return bytes;
}

static void add_constant(writing *w, clg_dtype dtype, int rank, const int64_t *dims,
                         const double *numbers, char name[16])
{
    new_name(w, name);
    assert_ok(sized_constant(w->b, name, dtype, (size_t)rank, dims,
                             as_bytes(dtype, numbers, run_node_count(rank, dims))));
}

static void add_node(writing *w, const char *op, size_t n, const char *const *inputs, char out[16])
{
    new_name(w, out);
    assert_ok(clg_builder_node(w->b, "", op, "", n, inputs, 1, (const char *[]){out}));
}

static void add_quantizing(writing *w, const char *op, const operand_row *o, const char *from,
                           char out[16])
{
    char scale[16], zero[16];
    const int64_t n = o->axis < 0 ? 1 : o->dims[o->axis];
    const int rank = o->axis < 0 ? 0 : 1;
    double *scales = run_node_zeros(n), *zeros = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        scales[i] = scale_of(o, i);
        zeros[i] = o->zero;
    }
    add_constant(w, CLG_FLOAT32, rank, &n, scales, scale);
    add_constant(w, o->dtype, rank, &n, zeros, zero);
    add_node(w, op, 3, (const char *[]){from, scale, zero}, out);
    if (o->axis >= 0) assert_ok(clg_builder_attribute_int(w->b, "axis", o->axis));
}

static void write_operand(writing *w, const operand_row *o, term *out)
{
    const double *numbers = numbers_of(o);
    shape_term(out, o->rank, o->dims);
    memcpy(out->v, numbers, (size_t)size_of(out) * sizeof *numbers);
    if (o->constant) {
        add_constant(w, o->dtype, o->rank, o->dims, numbers, out->name);
        return;
    }
    (void)snprintf(out->name, sizeof out->name, "%c", o->letter);
    if (strchr(w->e->inputs, o->letter)) return;
    w->e->inputs[strlen(w->e->inputs)] = o->letter;
    assert_ok(clg_builder_input(w->b, out->name, o->dtype, (size_t)o->rank, o->dims, NULL));
}

static void dequantize(writing *w, const operand_row *o, term *t)
{
    int64_t inner = 1;
    for (int i = o->axis + 1; o->axis >= 0 && i < t->rank; i++) inner *= t->dims[i];
    for (int64_t i = 0; t->v && i < size_of(t); i++)
        t->v[i] = (t->v[i] - o->zero) * scale_of(o, o->axis < 0 ? 0 : i / inner % t->dims[o->axis]);
    char from[16];
    memcpy(from, t->name, sizeof from);
    add_quantizing(w, "DequantizeLinear", o, from, t->name);
}

static void quantize(writing *w, const operand_row *o, term *t)
{
    const double low = o->dtype == CLG_INT8 ? -128 : 0;
    for (int64_t i = 0; t->v && i < size_of(t); i++)
        t->v[i] = fmin(fmax(nearbyint(t->v[i] / scale_of(o, 0)) + o->zero, low), low + 255);
    char from[16];
    memcpy(from, t->name, sizeof from);
    add_quantizing(w, "QuantizeLinear", o, from, t->name);
}

static void write_numbers(writing *w, term *out)
{
    double numbers[16];
    int64_t n = 0;
    const bool whole = *w->at == '#';
    w->at += whole;
    for (;; w->at++) {
        numbers[n++] = strtod(w->at, (char **)&w->at);
        if (*w->at != ':') break;
    }
    shape_term(out, n > 1 || whole, &n);
    memcpy(out->v, numbers, (size_t)n * sizeof *numbers);
    add_constant(w, whole ? CLG_INT64 : CLG_FLOAT32, out->rank, out->dims, out->v, out->name);
}

/* Parses `[name=value ...]`. Returns the number of attributes, 0 without a bracket. */
static size_t read_attributes(writing *w, graph_attribute out[8])
{
    size_t n = 0;
    if (*w->at != '[') return 0;
    while (*w->at++ != ']') {
        graph_attribute *a = &out[n++];
        memset(a, 0, sizeof *a);
        size_t length = strcspn(w->at, "=");
        memcpy(a->name, w->at, length);
        w->at += length + 1;
        length = strcspn(w->at, " ]");
        memcpy(a->text, w->at, length);
        w->at += length;
        for (const char *at = a->text; isdigit((unsigned char)*at) || *at == '-'; at++) {
            a->list[a->count++] = strtol(at, (char **)&at, 10);
            if (*at != ':') break;
        }
    }
    return n;
}

static void add_attribute(const writing *w, const graph_attribute *a)
{
    if (strchr(a->text, ':'))
        assert_ok(clg_builder_attribute_ints(w->b, a->name, a->count, a->list));
    else if (strchr(a->text, '.'))
        assert_ok(clg_builder_attribute_float(w->b, a->name, strtof(a->text, NULL)));
    else if (a->count == 1)
        assert_ok(clg_builder_attribute_int(w->b, a->name, a->list[0]));
    else
        assert_ok(clg_builder_attribute_string(w->b, a->name, a->text));
}

static void write_term(writing *w, term *out);

static void write_operator(writing *w, term *out)
{
    writing inner = *w;
    char op[32] = "";
    const char *inputs[4];
    const size_t length = strcspn(w->at, "[(");
    memcpy(op, w->at, length);
    w->at += length;
    inner.n_attributes = read_attributes(w, inner.attributes);
    inner.n_terms = 0;
    for (w->at++; w->at[-1] != ')'; w->at++) {
        w->at += strspn(w->at, " ");
        inputs[inner.n_terms] = inner.terms[inner.n_terms].name;
        write_term(w, &inner.terms[inner.n_terms++]);
    }
    compute(&inner, op, out);
    add_node(w, op, inner.n_terms, inputs, out->name);
    for (size_t i = 0; i < inner.n_attributes; i++) add_attribute(w, &inner.attributes[i]);
}

/* Writes Q0(...) or DQ0(...): the nodes of the expression in parentheses, and those that quantise
 * it. */
static void write_quantized(writing *w, term *out)
{
    const bool again = *w->at == 'D';
    const operand_row *o = find_row(w->at[again ? 2 : 1]);
    w->at += again ? 4 : 3;
    write_term(w, out);
    w->at++;
    quantize(w, o, out);
    if (again) dequantize(w, o, out);
}

/* Writes a dequantised operand, once for all the nodes that use it. */
static void write_dequantized(writing *w, char letter, term *out)
{
    term *kept = &w->dequantized[letter - 'a'];
    if (kept->rank == 0) {
        write_operand(w, find_row(letter), kept);
        dequantize(w, find_row(letter), kept);
    }
    *out = *kept;
    out->v = run_node_zeros(size_of(out));
    memcpy(out->v, kept->v, (size_t)size_of(out) * sizeof *out->v);
}

static void write_term(writing *w, term *out)
{
    memset(out, 0, sizeof *out);
    const char *at = w->at;
    if (*at == ',' || *at == ')') return;
    if ((at[0] == 'Q' && at[2] == '(') || (at[0] == 'D' && at[1] == 'Q' && at[3] == '(')) {
        write_quantized(w, out);
    } else if (*at == 'D' && !isalpha((unsigned char)at[2])) {
        w->at += 2;
        write_dequantized(w, at[1], out);
    } else if (isupper((unsigned char)*at)) {
        write_operator(w, out);
    } else if (isalpha((unsigned char)*at)) {
        w->at++;
        write_operand(w, find_row(*at), out);
    } else {
        write_numbers(w, out);
    }
}

clg_model *qdq_write(qdq_expression *e, const char *text)
{
    term y, dequantized[26] = {{.rank = 0}};
    writing w = {.at = text, .e = e, .dequantized = dequantized};
    clg_model *m;
    *e = (qdq_expression){.text = text, .is_quantized = text[0] == 'Q', .largest = 1};
    assert_ok(clg_builder_create(13, &w.b));
    write_term(&w, &y);
    assert_int_equal(*w.at, 0);
    memcpy(e->output, y.name, sizeof e->output);
    e->reference = y.v;
    for (int64_t i = 0; y.v && i < size_of(&y); i++) e->largest = fmax(e->largest, fabs(y.v[i]));
    assert_ok(clg_builder_output(w.b, y.name));
    assert_ok(clg_builder_build(w.b, &m));
    clg_builder_free(w.b);
    return m;
}

void qdq_set_inputs(const qdq_expression *e, clg_session *s)
{
    for (const char *at = e->inputs; *at; at++) {
        const operand_row *o = find_row(*at);
        const int64_t n = run_node_count(o->rank, o->dims);
        assert_ok(sized_input(s, (char[]){*at, '\0'}, o->dtype, (size_t)o->rank, o->dims,
                              as_bytes(o->dtype, numbers_of(o), n)));
    }
}
