/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and
 * com.microsoft's quantised operators other than GEMMs and convolutions; and their test inputs.
 * Scales of tests are powers of two, so that quotients are exact and ties are tested. Where a
 * kernel's rounding error may change a quantised result, any value is right.
 */
#include "ops/lowering/window.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* Bound of the rounding error of a few float32 operations, relative to the sum of the magnitudes of
 * their terms. */
#define ROUNDING 1e-6

static bool is(const node *n, const char *op_type) { return strcmp(n->op_type, op_type) == 0; }

static bool is_power_of_two(double x)
{
    int exponent;
    return frexp(x, &exponent) == 0.5;
}

/* ---- quantised dtypes ------------------------------------------------------------------------ */

static bool is_float_code(clg_dtype dtype) { return dtype_find(dtype)->kind == DTYPE_KIND_FLOAT; }

static double n_levels(clg_dtype dtype) { return ldexp(1, dtype_find(dtype)->bits); }

static double lowest(clg_dtype dtype)
{
    return dtype_find(dtype)->kind == DTYPE_KIND_SIGNED ? -n_levels(dtype) / 2 : 0;
}

/* Returns q + zero, rounded to the dtype: to nearest, ties to even, saturated. Of integers, q is
 * rounded before the sum. */
static double encode(clg_dtype dtype, double q, double zero)
{
    if (is_float_code(dtype))
        return minifloat_to_float(dtype,
                                  minifloat_from_float(dtype, float_for_narrowing(q + zero)));
    return fmin(fmax(nearbyint(q) + zero, lowest(dtype)), lowest(dtype) + n_levels(dtype) - 1);
}

/* What becomes of a quotient. */
typedef struct quantiser {
    clg_dtype dtype, quotient; /* quotient: the dtype to which it is rounded first */
    double zero;
    bool saturates;
} quantiser;

static double quantise(const quantiser *z, double q)
{
    const float narrow = float_for_narrowing(q);
    if (z->quotient == CLG_FLOAT16) q = half_to_float(half_from_float(narrow));
    if (z->quotient == CLG_BFLOAT16) q = bfloat16_to_float(bfloat16_from_float(narrow));
    return encode(z->dtype, q, z->zero);
}

/* Sets element i to the quantised quotient q, whose error in a kernel may be `error`. */
static void put_code(const selftest_expected *out, int64_t i, const quantiser *z, double q,
                     double error)
{
    const double sum = fabs(q) + fabs(z->zero), largest = encode(z->dtype, 1e30, 0);
    const bool overflows = !z->saturates && is_float_code(z->dtype) && sum > largest,
               determined =
                   !overflows && isfinite(q) && quantise(z, q - error) == quantise(z, q + error);
    out->y[i] = quantise(z, q);
    out->scale[i] = determined ? 1 : (double)NAN;
}

/* ---- QuantizeLinear, DequantizeLinear -------------------------------------------------------- */

enum { X, SCALE, ZERO };

/* The scales of x: [outer, n, inner]: of element (o, a, i), scale a / block or, in blocks, (o, a /
 * block, i) of [outer, ceil(n / block), inner]. */
typedef struct scale_map {
    int64_t n, inner, block;
    bool blocked;
} scale_map;

static scale_map read_scales(const node *n, const lower_operand *inputs)
{
    const shape *x = &inputs[X].dims, *scale = &inputs[SCALE].dims;
    const int64_t block = node_int(n, "block_size", 0);
    if (block == 0 && (scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1)))
        return (scale_map){.n = 1, .inner = 1, .block = 1};
    const int axis = selftest_axis(n, x, 1);
    scale_map m = {.n = x->dims[axis], .inner = 1, .block = block, .blocked = block > 0};
    if (!m.blocked) m.block = 1;
    for (int d = axis + 1; d < x->rank; d++) m.inner *= x->dims[d];
    return m;
}

static int64_t scale_index(const scale_map *m, int64_t i)
{
    const int64_t a = i / m->inner % m->n / m->block, blocks = (m->n + m->block - 1) / m->block;
    return m->blocked ? (i / m->inner / m->n * blocks + a) * m->inner + i % m->inner : a;
}

/* Returns the zero point that belongs to scale k. */
static double zero_at(const lower_context *lc, const double *const *in, int64_t k)
{
    if (!lower_has_input(lc, ZERO)) return 0;
    return in[ZERO][selftest_count(&lc->inputs[ZERO].dims) == 1 ? 0 : k];
}

/* Returns the dtype to which x / scale is rounded: that of attribute `precision`, else from opset
 * 23 on that of the scale. */
static clg_dtype quotient_dtype(const lower_context *lc)
{
    const int64_t requested = node_int(lc->node, "precision", 0);
    if (requested) return (clg_dtype)requested;
    return lc->node->domain[0] == '\0' && lc->node->opset >= 23 ? lc->inputs[SCALE].dtype
                                                                : CLG_FLOAT32;
}

/* Computes QuantizeLinear and clgraph.Quantized, whose scale and zero point are attributes. */
clg_status selftest_quantize(const lower_context *lc, const double *const *in,
                             const selftest_expected *out)
{
    const bool internal = is(lc->node, "Quantized");
    const double scale = (double)node_float(lc->node, "scale", 1);
    const scale_map m =
        internal ? (scale_map){.n = 1, .inner = 1, .block = 1} : read_scales(lc->node, lc->inputs);
    quantiser z = {.dtype = lc->outputs[0].dtype,
                   .quotient = internal ? CLG_FLOAT32 : quotient_dtype(lc),
                   .zero = (double)node_float(lc->node, "zero", 0),
                   .saturates = node_int(lc->node, "saturate", 1) != 0};
    for (int64_t i = 0; i < selftest_count(&lc->inputs[X].dims); i++) {
        const int64_t k = scale_index(&m, i);
        const double s = internal ? scale : in[SCALE][k], q = in[X][i] / s;
        if (!internal) z.zero = zero_at(lc, in, k);
        put_code(&out[0], i, &z, q, is_power_of_two(s) ? 0 : ROUNDING * fabs(q));
    }
    return CLG_OK;
}

/* Computes DequantizeLinear and clgraph.Dequantized. */
clg_status selftest_dequantize(const lower_context *lc, const double *const *in,
                               const selftest_expected *out)
{
    const bool internal = is(lc->node, "Dequantized");
    const double scale = (double)node_float(lc->node, "scale", 1),
                 zero = (double)node_float(lc->node, "zero", 0);
    const scale_map m =
        internal ? (scale_map){.n = 1, .inner = 1, .block = 1} : read_scales(lc->node, lc->inputs);
    for (int64_t i = 0; i < selftest_count(&lc->inputs[X].dims); i++) {
        const int64_t k = scale_index(&m, i);
        const double s = internal ? scale : in[SCALE][k], z = internal ? zero : zero_at(lc, in, k);
        out[0].y[i] = in[X][i] * s - z * s;
        /* float16 results below 6.1e-5, which are subnormal, may be flushed to zero */
        out[0].scale[i] = fabs(in[X][i] * s) + fabs(z * s) + 1.0 / 32;
    }
    return CLG_OK;
}

/* ---- DynamicQuantizeLinear ------------------------------------------------------------------- */

clg_status selftest_dynamic_quantize(const lower_context *lc, const double *const *in,
                                     const selftest_expected *out)
{
    const int64_t n = selftest_count(&lc->inputs[X].dims);
    const quantiser by_zero = {.dtype = CLG_UINT8, .quotient = CLG_FLOAT32, .saturates = true};
    quantiser z = by_zero;
    double low = 0, high = 0, zero, known;
    for (int64_t i = 0; i < n; i++) {
        low = fmin(low, in[X][i]);
        high = fmax(high, in[X][i]);
    }
    const double scale = high > low ? (high - low) / 255 : 1;
    put_code(&(selftest_expected){&zero, &known}, 0, &by_zero, -low / scale,
             -low / scale * 2 * ROUNDING);
    z.zero = zero;
    for (int64_t i = 0; out[0].y && i < n; i++) {
        const double q = in[X][i] / scale;
        put_code(&out[0], i, &z, q, fabs(q) * 2 * ROUNDING);
        if (isnan(known)) out[0].scale[i] = known;
    }
    if (lc->n_outputs > 1 && out[1].y) out[1].y[0] = out[1].scale[0] = scale;
    if (lc->n_outputs > 2 && out[2].y) {
        out[2].y[0] = zero;
        out[2].scale[0] = known;
    }
    return CLG_OK;
}

/* ---- com.microsoft's QLinear operators ------------------------------------------------------- */

/* The scale and zero point in inputs `at` and `at + 1`, which belong to an operand or the result.
 * */
typedef struct qlinear_scale {
    double scale, zero;
} qlinear_scale;

static qlinear_scale scale_in(const lower_context *lc, const double *const *in, size_t at)
{
    return (qlinear_scale){in[at][0], lower_has_input(lc, at + 1) ? in[at + 1][0] : 0};
}

/* Sets element i to the quantised `real`. size: the sum of the magnitudes of its terms. exact:
 * kernels compute it without rounding if the quotient is representable in float32. */
static void put_real(const lower_context *lc, const selftest_expected *out, int64_t i,
                     const qlinear_scale *to, double real, double size, bool exact)
{
    const quantiser z = {.dtype = lc->outputs[0].dtype,
                         .quotient = CLG_FLOAT32,
                         .zero = to->zero,
                         .saturates = true};
    const double q = real / to->scale;
    exact = exact && is_power_of_two(to->scale) && (double)(float)q == q;
    put_code(&out[0], i, &z, q, exact ? 0 : ROUNDING * (size / to->scale + fabs(q)));
}

/* Computes QLinearAdd, QLinearMul, QLinearSigmoid and QLinearLeakyRelu. */
static clg_status qlinear_elements(const lower_context *lc, const double *const *in,
                                   const selftest_expected *out)
{
    const node *n = lc->node;
    const bool sum = is(n, "QLinearAdd"), multiplies = is(n, "QLinearMul"),
               sigmoid = is(n, "QLinearSigmoid"), two = sum || multiplies;
    const double alpha = (double)node_float(n, "alpha", 0.01f);
    double *x[2] = {NULL, NULL};
    CLG_TRY(selftest_broadcast(lc, 0, in, 1, &x[0]));
    if (two) CLG_TRY(selftest_broadcast(lc, 3, in, 1, &x[1]));
    const qlinear_scale of_a = scale_in(lc, in, 1), of_b = two ? scale_in(lc, in, 4) : of_a,
                        to = scale_in(lc, in, two ? 6 : 3);
    const bool powers = is_power_of_two(of_a.scale) && is_power_of_two(of_b.scale);
    for (int64_t i = 0; i < selftest_count(&lc->outputs[0].dims); i++) {
        const double a = x[0][i] * of_a.scale - of_a.zero * of_a.scale,
                     b = two ? x[1][i] * of_b.scale - of_b.zero * of_b.scale : 0;
        if (sum)
            put_real(lc, out, i, &to, a + b, fabs(a) + fabs(b), powers);
        else if (multiplies)
            put_real(lc, out, i, &to, a * b, fabs(a * b), powers);
        else if (sigmoid)
            put_real(lc, out, i, &to, (1 + tanh(a / 2)) / 2, 2, false);
        else
            put_real(lc, out, i, &to, fmax(a, 0) + alpha * fmin(a, 0), fabs(a), powers && a >= 0);
    }
    return CLG_OK;
}

/* Computes QLinearGlobalAveragePool by scattering each element to its mean. */
static clg_status qlinear_global_pool(const lower_context *lc, const double *const *in,
                                      const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const bool last = node_int(lc->node, "channels_last", 0) != 0;
    const int64_t n = selftest_count(x), n_out = selftest_count(&lc->outputs[0].dims),
                  channels = x->dims[last ? x->rank - 1 : 1];
    const qlinear_scale from = scale_in(lc, in, 1), to = scale_in(lc, in, 3);
    double *sums = arena_alloc(lc->memory, (size_t)n_out + 1, sizeof *sums);
    if (!sums) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (n_out == 0) return CLG_OK;
    const int64_t count = n / n_out;
    for (int64_t i = 0; i < n; i++)
        sums[last ? i / (count * channels) * channels + i % channels : i / count] += in[0][i];
    for (int64_t k = 0; k < n_out; k++) {
        const double mean = sums[k] / (double)count;
        put_real(lc, out, k, &to, (mean - from.zero) * from.scale,
                 (fabs(mean) + fabs(from.zero)) * from.scale,
                 is_power_of_two((double)count) && is_power_of_two(from.scale));
    }
    return CLG_OK;
}

/* Returns the index in x of the window's element `tap` (in row-major order) for output `at` of a
 * plane; -1 in the padding. *out_counted: not beyond the padding. */
static int64_t tap_of(const window_axis a[WINDOW_MAX_AXES], int64_t at, int64_t tap,
                      bool *out_counted)
{
    int64_t index = 0, stride = 1;
    bool inside = true;
    *out_counted = true;
    for (int d = WINDOW_MAX_AXES - 1; d >= 0; d--) {
        const int64_t i =
            at % a[d].out * a[d].stride + tap % a[d].kernel * a[d].dilation - a[d].pad_begin;
        inside = inside && i >= 0 && i < a[d].in;
        *out_counted = *out_counted && i < a[d].in + a[d].pad_end;
        index += i * stride;
        stride *= a[d].in;
        at /= a[d].out;
        tap /= a[d].kernel;
    }
    return inside ? index : -1;
}

/* Computes QLinearAveragePool. Channels-last ones are transposed before they are lowered. */
static clg_status qlinear_pool(const lower_context *lc, const double *const *in,
                               const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const bool padded = node_int(lc->node, "count_include_pad", 0) != 0;
    const qlinear_scale from = scale_in(lc, in, 1), to = scale_in(lc, in, 3);
    window_desc w;
    window_axis a[WINDOW_MAX_AXES];
    if (node_int(lc->node, "channels_last", 0) != 0)
        return error_set(CLG_ERROR_NOT_FOUND, "channels_last has no reference");
    CLG_TRY(window_read(lc->node, x, NULL, &w));
    window_fill(&w, a);
    const int64_t n_in = window_count_in(a), n_out = window_count_out(a);
    for (int64_t i = 0; i < x->dims[0] * x->dims[1] * n_out; i++) {
        const double *plane = in[0] + i / n_out * n_in;
        double sum = 0, size = 0, count = 0;
        for (int64_t tap = 0; tap < window_count_taps(a); tap++) {
            bool counted;
            const int64_t at = tap_of(a, i % n_out, tap, &counted);
            if (at >= 0) {
                sum += plane[at] - from.zero;
                size += fabs(plane[at]) + fabs(from.zero);
            }
            if (at >= 0 || (padded && counted)) count++;
        }
        put_real(lc, out, i, &to, sum * from.scale / count, size * from.scale / count,
                 is_power_of_two(count) && is_power_of_two(from.scale));
    }
    return CLG_OK;
}

/* Computes QLinearConcat: each part, with its own scale and zero point, follows the one before. */
static clg_status qlinear_concat(const lower_context *lc, const double *const *in,
                                 const selftest_expected *out)
{
    const shape *y = &lc->outputs[0].dims;
    const int axis = selftest_axis(lc->node, y, 0);
    const qlinear_scale to = scale_in(lc, in, 0);
    int64_t outer = 1, offset = 0;
    for (int d = 0; d < axis; d++) outer *= y->dims[d];
    if (selftest_count(y) == 0) return CLG_OK;
    const int64_t row = selftest_count(y) / outer;
    for (size_t k = 2; k + 1 < lc->n_inputs; k += 3) {
        const qlinear_scale from = scale_in(lc, in, k + 1);
        const int64_t part = selftest_count(&lc->inputs[k].dims) / outer;
        for (int64_t i = 0; i < outer * part; i++)
            put_real(lc, out, i / part * row + offset + i % part, &to,
                     (in[k][i] - from.zero) * from.scale,
                     (fabs(in[k][i]) + fabs(from.zero)) * from.scale, is_power_of_two(from.scale));
        offset += part;
    }
    return CLG_OK;
}

clg_status selftest_qlinear(const lower_context *lc, const double *const *in,
                            const selftest_expected *out)
{
    if (is(lc->node, "QLinearGlobalAveragePool")) return qlinear_global_pool(lc, in, out);
    if (is(lc->node, "QLinearAveragePool")) return qlinear_pool(lc, in, out);
    if (is(lc->node, "QLinearConcat")) return qlinear_concat(lc, in, out);
    return qlinear_elements(lc, in, out);
}

/* ---- test inputs ----------------------------------------------------------------------------- */

/* Returns scale k. */
static double test_scale(int64_t k) { return ldexp(1, -5 - (int)(k % 3)); }

/* Returns zero point k: a number of the middle sixteenth of the range, 0 for dtypes of floats and
 * of more than 16 bits. */
static double test_zero(clg_dtype dtype, int64_t k)
{
    if (is_float_code(dtype) || dtype_find(dtype)->bits > 16) return 0;
    const int64_t width = (int64_t)fmin(n_levels(dtype) / 32, 16);
    return lowest(dtype) + n_levels(dtype) / 2 + (double)(7 * k % (2 * width + 1) - width);
}

/* Returns element k of the scales or zero points in an input. */
static double number_of(const selftest_problem *p, size_t input, int64_t k)
{
    const lower_operand *o = &p->inputs[input];
    if (input >= p->node.n_inputs || o->dtype == CLG_DTYPE_NONE) return 0;
    if (selftest_count(&o->dims) == 1) k = 0;
    if (o->known && k < o->known->n_elements) return tensor_get_float(o->known, k);
    return input == ZERO ? test_zero(o->dtype, k) : test_scale(k);
}

/* Returns a random value of a quantised dtype; those of dtypes of floats are moderate. */
static double random_code(clg_dtype dtype, uint64_t random)
{
    if (is_float_code(dtype))
        return (double)(int64_t)(random % 257 - 128) / (dtype == CLG_FLOAT4E2M1 ? 16 : 4);
    if (dtype_find(dtype)->bits > 16) return (double)(random % 2001) - 1000;
    return lowest(dtype) + (double)(random % (uint64_t)n_levels(dtype));
}

/* Returns a number that is quantised to any value of a dtype; a few are beyond its range. Half of
 * them are ties if the quotient is exact. */
static double random_real(clg_dtype dtype, double scale, double zero, uint64_t random)
{
    const double part =
        is_power_of_two(scale) ? (double)(random % 2) / 2 : 0.3 * (double)(random % 3);
    random /= 6;
    if (is_float_code(dtype)) return scale * (random_code(dtype, random) + part / 8 - zero);
    const double margin = floor(n_levels(dtype) / 32), range = n_levels(dtype) + 2 * margin;
    return scale * (lowest(dtype) - margin + (double)(random % (uint64_t)range) + part - zero);
}

/* Sets *out to an element of an operand, scale or zero point of a QLinear operator. */
static void qlinear_element(const selftest_problem *p, size_t input, uint64_t random, double *out)
{
    const bool two = is(&p->node, "QLinearAdd") || is(&p->node, "QLinearMul"),
               concat = is(&p->node, "QLinearConcat");
    const clg_dtype dtype = p->inputs[input].dtype;
    if (dtype == CLG_FLOAT32) { /* a scale; the result has a larger one, or saturates too often */
        const bool of_result = input == (two ? 6u : concat ? 0u : 3u);
        *out = 1.0 / 64;
        if (of_result && (two || concat)) *out = 1.0 / 32;
        if (of_result && is(&p->node, "QLinearSigmoid")) *out = 1.0 / 128;
        if (of_result && strstr(p->node.op_type, "Pool")) *out = 1.0937 / 64; /* few ties */
    } else if (input > 0 && p->inputs[input - 1].dtype == CLG_FLOAT32) {
        *out = test_zero(dtype, (int64_t)(random % 33));
    } else {
        *out = random_code(dtype, random);
    }
}

/* Returns an element of DynamicQuantizeLinear's input, whose range makes the scale 1 / 64 and the
 * zero point 100. There are no ties, since kernels may round the scale. */
static double dynamic_element(int64_t at, uint64_t random)
{
    if (at < 2) return (at == 0 ? -100.0 : 155.0) / 64;
    const double q = (double)(random / 3 % 256) - 100 + 0.25 * (double)(random % 3) - 0.25;
    return fmin(fmax(q, -100), 155) / 64;
}

bool selftest_quantize_contents(const selftest_problem *p, size_t input, int64_t at,
                                uint64_t random, double *out)
{
    const node *n = &p->node;
    const clg_dtype dtype = p->inputs[input].dtype;
    if (strncmp(n->op_type, "QLinear", 7) == 0) {
        qlinear_element(p, input, random, out);
    } else if (is(n, "DynamicQuantizeLinear")) {
        *out = dynamic_element(at, random);
    } else if (input != X) {
        *out = number_of(p, input, at);
    } else if (is(n, "DequantizeLinear") || is(n, "Dequantized")) {
        *out = random_code(dtype, random);
    } else if (is(n, "Quantized")) {
        *out = random_real(p->outputs[0].dtype, (double)node_float(n, "scale", 1),
                           (double)node_float(n, "zero", 0), random);
    } else {
        const scale_map m = read_scales(n, p->inputs);
        const int64_t k = scale_index(&m, at);
        *out =
            random_real(p->outputs[0].dtype, number_of(p, SCALE, k), number_of(p, ZERO, k), random);
    }
    return true;
}
