/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of operators along axes: Softmax and its like, reductions,
 * ArgMax and ArgMin, CumSum and CumProd, TopK. Where kernels gather the elements of a result, a
 * reduction here scatters each element to its result.
 */
#include "session/selftest/references/selftest_axis.h"

#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines, integers, permutations ----------------------------------------------------------- */

int selftest_axis(const node *n, const shape *x, int64_t fallback)
{
    return x->rank > 0 ? (int)((node_int(n, "axis", fallback) + x->rank) % x->rank) : 0;
}

selftest_lines selftest_lines_of(const shape *s, int axis)
{
    selftest_lines a = {1, 1, 1};
    for (int i = 0; i < s->rank; i++)
        *(i < axis ? &a.outer : i > axis ? &a.inner : &a.dim) *= s->dims[i];
    return a;
}

int64_t selftest_line_start(const selftest_lines *a, int64_t line)
{
    return line / a->inner * a->dim * a->inner + line % a->inner;
}

double selftest_wrap(clg_dtype dtype, uint64_t bits)
{
    const dtype_info *d = dtype_find(dtype);
    const uint64_t top = UINT64_C(1) << (d->bits - 1), low = bits & (top | (top - 1));
    return d->kind == DTYPE_KIND_UNSIGNED ? (double)low : (double)(int64_t)((low ^ top) - top);
}

uint64_t selftest_bits(double integer)
{
    return integer < 0 ? 0 - (uint64_t)-integer : (uint64_t)integer;
}

double selftest_least_scale(clg_dtype dtype) { return dtype == CLG_FLOAT16 ? 0x1p-14 : 0x1p-100; }

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

int64_t selftest_permuted(int64_t i, int64_t n)
{
    int64_t factor = n * 5 / 8 + 1;
    while (common_divisor(factor, n) != 1) factor++;
    return i % n * factor % n;
}

/* ---- Softmax, LogSoftmax, Hardmax ------------------------------------------------------------ */

/* Computes one line of Hardmax, which is 1 at the first of the largest elements. */
static void hardmax_line(const double *x, const selftest_lines *a, double *y)
{
    int64_t best = 0;
    for (int64_t k = 1; k < a->dim; k++)
        if (x[k * a->inner] > x[best]) best = k * a->inner;
    y[best] = 1;
}

/* Computes one line of Softmax as exp(x - log(sum exp(x))), and LogSoftmax as the logarithm of
 * that; in terms of differences from the line's first element. */
static void softmax_line(const double *x, const selftest_lines *a, bool is_log, double *y,
                         double *scale)
{
    double sum = 0;
    for (int64_t k = 0; k < a->dim; k++) sum += exp(x[k * a->inner] - x[0]);
    for (int64_t i = 0; i < a->dim * a->inner; i += a->inner) {
        const double logarithm = x[i] - x[0] - log(sum);
        y[i] = is_log ? logarithm : exp(logarithm);
        scale[i] = fabs(y[i]) + (is_log ? 1 : 1 / (double)a->dim);
    }
}

clg_status selftest_softmax(const lower_context *lc, const double *const *in,
                            const selftest_expected *out)
{
    const bool flattens = lc->node->opset < 13; /* all dimensions from the axis on are one line */
    const bool is_log = strcmp(lc->node->op_type, "LogSoftmax") == 0,
               is_hard = strcmp(lc->node->op_type, "Hardmax") == 0;
    const shape *x = &lc->inputs[0].dims;
    selftest_lines a = selftest_lines_of(x, selftest_axis(lc->node, x, flattens ? 1 : -1));
    if (flattens) a = (selftest_lines){a.outer, a.dim * a.inner, 1};
    for (int64_t line = 0; a.dim > 0 && line < a.outer * a.inner; line++) {
        const int64_t at = selftest_line_start(&a, line);
        if (is_hard)
            hardmax_line(in[0] + at, &a, out[0].y + at);
        else
            softmax_line(in[0] + at, &a, is_log, out[0].y + at, out[0].scale + at);
    }
    return CLG_OK;
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef enum reduction_kind {
    SUM,
    MEAN,
    MAX,
    MIN,
    PRODUCT,
    L1,
    L2,
    SUM_SQUARE,
    LOG_SUM,
    LOG_SUM_EXP,
    NO_REDUCTION
} reduction_kind;

/* A reduction of n elements to n_out results of `count` elements each. */
typedef struct reduction {
    reduction_kind kind;
    const shape *x;
    int64_t strides[CLG_MAX_RANK]; /* in the output, of the input's dimensions; 0: reduced */
    int64_t n, n_out, count;
} reduction;

static reduction_kind kind_of(const char *op_type)
{
    static const struct {
        const char *op_type;
        reduction_kind kind;
    } rows[] = {{"ReduceSum", SUM},
                {"ReduceMean", MEAN},
                {"ReduceMax", MAX},
                {"ReduceMin", MIN},
                {"ReduceProd", PRODUCT},
                {"ReduceL1", L1},
                {"ReduceL2", L2},
                {"ReduceSumSquare", SUM_SQUARE},
                {"ReduceLogSum", LOG_SUM},
                {"ReduceLogSumExp", LOG_SUM_EXP},
                {"GlobalAveragePool", MEAN},
                {"GlobalMaxPool", MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, op_type) == 0) return rows[i].kind;
    return NO_REDUCTION;
}

/* Finds the reduced dimensions: an attribute or input lists them; without a list all are reduced
 * or, with noop_with_empty_axes, none; a global pool reduces all but the first two. */
static void find_reduced(const lower_context *lc, const double *const *in,
                         bool reduced[CLG_MAX_RANK])
{
    size_t count;
    const int rank = lc->inputs[0].dims.rank;
    const int64_t *axes = node_ints(lc->node, "axes", &count);
    const double *given = lower_has_input(lc, 1) ? in[1] : NULL;
    if (given) count = (size_t)selftest_count(&lc->inputs[1].dims);
    const bool all = count == 0 && node_int(lc->node, "noop_with_empty_axes", 0) == 0;
    const bool is_global = strncmp(lc->node->op_type, "Global", 6) == 0;
    for (int d = 0; d < rank; d++) reduced[d] = is_global ? d >= 2 : all;
    for (size_t i = 0; i < count && rank > 0; i++)
        reduced[((given ? (int64_t)given[i] : axes[i]) + rank) % rank] = true;
}

static reduction read_reduction(const lower_context *lc, const double *const *in)
{
    bool reduced[CLG_MAX_RANK] = {false};
    reduction r = {.kind = kind_of(lc->node->op_type), .x = &lc->inputs[0].dims, .n_out = 1};
    find_reduced(lc, in, reduced);
    for (int d = r.x->rank - 1; d >= 0; d--) {
        r.strides[d] = reduced[d] ? 0 : r.n_out;
        r.n_out *= reduced[d] ? 1 : r.x->dims[d];
    }
    r.n = selftest_count(r.x);
    r.count = r.n_out > 0 ? r.n / r.n_out : 0;
    return r;
}

/* Returns the result that element i belongs to. */
static int64_t result_of(const reduction *r, int64_t i)
{
    int64_t at = 0;
    for (int d = r->x->rank - 1; d >= 0; d--) {
        at += i % r->x->dims[d] * r->strides[d];
        i /= r->x->dims[d];
    }
    return at;
}

/* Adds element v to a result and its scale. */
static void add_term(reduction_kind kind, double v, double *y, double *scale)
{
    const double term = kind == L1                         ? fabs(v)
                        : kind == L2 || kind == SUM_SQUARE ? v * v
                        : kind == LOG_SUM_EXP              ? exp(v)
                                                           : v;
    switch (kind) {
    case MAX: *y = fmax(*y, v); return;
    case MIN: *y = fmin(*y, v); return;
    case PRODUCT: *y *= v; return;
    default: *y += term; *scale += fabs(term);
    }
}

/* Finishes a result: y is the sum, extreme or product of its terms, scale the sum of their
 * magnitudes. */
static void finish_result(const reduction *r, clg_dtype dtype, double *y, double *scale)
{
    const double count = (double)r->count;
    switch (r->kind) {
    case MEAN:
        *y /= count;
        *scale /= count;
        break;
    case L2:
        *y = sqrt(*y);
        *scale = *y;
        break;
    case LOG_SUM: /* the error of the sum is divided by the sum */
        *scale /= *y;
        *y = log(*y);
        *scale += fabs(*y);
        break;
    case LOG_SUM_EXP: /* kernels add the logarithm of up to `count` to an element */
        *y = log(*y);
        *scale = 1 + fabs(*y) + log(count);
        break;
    case PRODUCT: /* each factor adds a rounding error */
        *scale = fabs(*y) * (1 + count / 64);
        break;
    default: break;
    }
    const bool is_exact = r->kind == MAX || r->kind == MIN;
    if (!is_exact) *scale += selftest_least_scale(dtype);
    if (!isfinite(*y)) *scale = NAN; /* of no elements, or the logarithm of a negative sum */
}

static void reduce_floats(const reduction *r, clg_dtype dtype, const double *x,
                          const selftest_expected *out)
{
    const double start = r->kind == MAX       ? -HUGE_VAL
                         : r->kind == MIN     ? HUGE_VAL
                         : r->kind == PRODUCT ? 1
                                              : 0;
    for (int64_t i = 0; i < r->n_out; i++) out->y[i] = start;
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t at = result_of(r, i);
        add_term(r->kind, x[i], &out->y[at], &out->scale[at]);
    }
    for (int64_t i = 0; i < r->n_out; i++) finish_result(r, dtype, &out->y[i], &out->scale[i]);
}

/* Returns an integer result of the sum or product of its terms, both modulo 2^64. */
static double finish_integer(const reduction *r, clg_dtype dtype, uint64_t total)
{
    switch (r->kind) {
    case MEAN: /* rounded towards zero */
        if (dtype_find(dtype)->kind == DTYPE_KIND_UNSIGNED) {
            const uint64_t mean = total / (uint64_t)r->count;
            return (double)mean;
        } else {
            const int64_t mean = (int64_t)total / r->count;
            return (double)mean;
        }
    case L2: return selftest_wrap(dtype, (uint64_t)sqrt((double)total));
    default: return selftest_wrap(dtype, total);
    }
}

/* Reduces integers other than to their maximum or minimum, exactly; results wrap. */
static clg_status reduce_integers(const lower_context *lc, const reduction *r, const double *x,
                                  const selftest_expected *out)
{
    uint64_t *totals = arena_alloc(lc->memory, (size_t)r->n_out + 1, sizeof *totals);
    if (!totals) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < r->n_out; i++) totals[i] = r->kind == PRODUCT;
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t at = result_of(r, i);
        const uint64_t v = selftest_bits(r->kind == L1 ? fabs(x[i]) : x[i]);
        if (r->kind == PRODUCT)
            totals[at] *= v;
        else
            totals[at] += r->kind == L2 || r->kind == SUM_SQUARE ? v * v : v;
    }
    for (int64_t i = 0; i < r->n_out; i++) {
        if (r->kind == MEAN && r->count == 0)
            out->scale[i] = NAN;
        else
            out->y[i] = finish_integer(r, lc->outputs[0].dtype, totals[i]);
    }
    return CLG_OK;
}

clg_status selftest_reduce(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    const reduction r = read_reduction(lc, in);
    const clg_dtype dtype = lc->outputs[0].dtype;
    if (r.kind == NO_REDUCTION)
        return error_set(CLG_ERROR_NOT_FOUND, "%s is not a known reduction", lc->node->op_type);
    if (r.kind != MAX && r.kind != MIN && dtype_is_integer(dtype))
        return reduce_integers(lc, &r, in[0], out);
    reduce_floats(&r, dtype, in[0], out);
    return CLG_OK;
}

/* ---- ArgMax, ArgMin -------------------------------------------------------------------------- */

/* Computes the index of the largest or smallest element of each line, from its last element to its
 * first; of equal elements that of the first or, with select_last_index, the last. */
clg_status selftest_arg(const lower_context *lc, const double *const *in,
                        const selftest_expected *out)
{
    const double sign = strcmp(lc->node->op_type, "ArgMax") == 0 ? 1 : -1;
    const bool last = node_int(lc->node, "select_last_index", 0) != 0;
    const shape *x = &lc->inputs[0].dims;
    const selftest_lines a = selftest_lines_of(x, selftest_axis(lc->node, x, 0));
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        const double *from = in[0] + selftest_line_start(&a, line);
        int64_t best = a.dim - 1;
        for (int64_t k = a.dim - 1; k >= 0; k--) {
            const double ahead = sign * (from[k * a.inner] - from[best * a.inner]);
            if (ahead > 0 || (ahead == 0 && !last)) best = k;
        }
        out[0].y[line] = (double)best;
    }
    return CLG_OK;
}

/* ---- CumSum, CumProd ------------------------------------------------------------------------- */

/* A cumulative sum or product along lines. */
typedef struct cumulation {
    selftest_lines a;
    clg_dtype dtype;
    bool is_product, exclusive, reverse;
} cumulation;

/* The result so far: in double with its scale, and as an integer, modulo 2^64. */
typedef struct running {
    double total, scale;
    uint64_t bits;
} running;

/* Adds or multiplies element v, number k of its line. Each factor of a product adds a rounding
 * error. */
static void join(const cumulation *c, double v, int64_t k, running *r)
{
    r->total = c->is_product ? r->total * v : r->total + v;
    r->scale = c->is_product ? fabs(r->total) * (1 + (double)k / 64) : r->scale + fabs(v);
    if (!dtype_is_integer(c->dtype)) return;
    r->bits = c->is_product ? r->bits * selftest_bits(v) : r->bits + selftest_bits(v);
}

static void cumulate_line(const cumulation *c, const double *x, double *y, double *scale)
{
    const bool is_integer = dtype_is_integer(c->dtype);
    running r = {c->is_product, c->is_product, c->is_product};
    for (int64_t k = 0; k < c->a.dim; k++) {
        const int64_t at = (c->reverse ? c->a.dim - 1 - k : k) * c->a.inner;
        running next = r;
        join(c, x[at], k, &next);
        const running *result = c->exclusive ? &r : &next;
        y[at] = is_integer ? selftest_wrap(c->dtype, result->bits) : result->total;
        scale[at] = is_integer ? 0 : result->scale + selftest_least_scale(c->dtype);
        r = next;
    }
}

clg_status selftest_cumulative(const lower_context *lc, const double *const *in,
                               const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    if (x->rank < 1) return error_set(CLG_ERROR_NOT_FOUND, "a scalar has no axis");
    const int axis = (int)(((int64_t)in[1][0] + x->rank) % x->rank);
    const cumulation c = {.a = selftest_lines_of(x, axis),
                          .dtype = lc->inputs[0].dtype,
                          .is_product = strcmp(lc->node->op_type, "CumProd") == 0,
                          .exclusive = node_int(lc->node, "exclusive", 0) != 0,
                          .reverse = node_int(lc->node, "reverse", 0) != 0};
    for (int64_t line = 0; line < c.a.outer * c.a.inner; line++) {
        const int64_t at = selftest_line_start(&c.a, line);
        cumulate_line(&c, in[0] + at, out[0].y + at, out[0].scale + at);
    }
    return CLG_OK;
}

/* Computes LinearScan term by term: the sum over j of b[j] times all a after j, up to each k. */
clg_status selftest_linear_scan(const lower_context *lc, const double *const *in,
                                const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    if (x->rank < 1) return error_set(CLG_ERROR_NOT_FOUND, "a scalar has no axis");
    const int axis = (int)(((int64_t)in[2][0] + x->rank) % x->rank);
    const selftest_lines a = selftest_lines_of(x, axis);
    const bool reverse = node_int(lc->node, "reverse", 0) != 0;
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        const int64_t at = selftest_line_start(&a, line);
        for (int64_t k = 0; k < a.dim; k++) {
            const int64_t to = at + (reverse ? a.dim - 1 - k : k) * a.inner;
            double factor = 1, sum = 0, scale = selftest_least_scale(lc->outputs[0].dtype);
            for (int64_t j = k; j >= 0; j--) {
                const int64_t from = at + (reverse ? a.dim - 1 - j : j) * a.inner;
                sum += factor * in[1][from];
                scale += fabs(factor * in[1][from]) * (1 + (double)(k - j) / 64);
                factor *= in[0][from];
            }
            out[0].y[to] = sum;
            out[0].scale[to] = scale;
        }
    }
    return CLG_OK;
}

/* ---- TopK ------------------------------------------------------------------------------------ */

typedef struct ranked {
    double value; /* negated where the smallest are the first */
    int64_t index;
} ranked;

/* Compares for qsort: the larger value is first, of equal ones that of the lower index. */
static int by_rank(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->value != b->value) return a->value > b->value ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Computes both outputs by sorting each line. */
clg_status selftest_topk(const lower_context *lc, const double *const *in,
                         const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims, *y = &lc->outputs[out[0].y ? 0 : 1].dims;
    const int axis = selftest_axis(lc->node, x, -1);
    const selftest_lines a = selftest_lines_of(x, axis), to = selftest_lines_of(y, axis);
    const double sign = node_int(lc->node, "largest", 1) != 0 ? 1 : -1;
    ranked *sorted = arena_alloc(lc->memory, (size_t)a.dim + 1, sizeof *sorted);
    if (!sorted) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (node_int(lc->node, "sorted", 1) == 0)
        return error_set(CLG_ERROR_NOT_FOUND, "the order of TopK's elements is not determined");
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        const double *from = in[0] + selftest_line_start(&a, line);
        const int64_t start = selftest_line_start(&to, line);
        for (int64_t k = 0; k < a.dim; k++) sorted[k] = (ranked){sign * from[k * a.inner], k};
        qsort(sorted, (size_t)a.dim, sizeof *sorted, by_rank);
        for (int64_t k = 0; k < to.dim; k++) {
            if (out[0].y) out[0].y[start + k * to.inner] = sign * sorted[k].value;
            if (out[1].y) out[1].y[start + k * to.inner] = (double)sorted[k].index;
        }
    }
    return CLG_OK;
}

/* Gives the elements of a line distinct values where the dtype has so many: a permutation of
 * integers around zero or, of an unsigned dtype, from zero on. */
bool selftest_topk_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                            double *out)
{
    (void)random;
    const lower_operand *x = &p->inputs[0];
    if (input != 0 || x->known) return false;
    const selftest_lines a = selftest_lines_of(&x->dims, selftest_axis(&p->node, &x->dims, -1));
    const int64_t k = at / a.inner % a.dim, line = at / a.inner / a.dim + at % a.inner;
    const bool is_unsigned = dtype_find(x->dtype)->kind == DTYPE_KIND_UNSIGNED;
    *out = (double)(selftest_permuted(k + line, a.dim) - (is_unsigned ? 0 : a.dim / 2));
    return true;
}
