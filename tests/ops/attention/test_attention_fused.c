/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares com.microsoft's Attention, QAttention, MultiHeadAttention and GroupQueryAttention with
 * the plain formula in double. Masked keys add a negative number to the scores; later
 * positions are excluded. Few sizes suffice, since test_attention.c tests the kernels.
 *
 * Tolerance for values of magnitude 1: float32 2e-5, float16 6e-3.
 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

enum { BATCH = 2, HEADS = 3, D = 8, HIDDEN = HEADS * D };

/* Computes y[i] = attention of q [places, D] over k, v [total, D]. add[i * total + j] is added to
 * the scores, and `extra` to the sum of exponentials (1: smooth softmax). Strides are in elements.
 */
static void attend(const double *q, int64_t q_step, const double *k, const double *v,
                   int64_t kv_step, int64_t places, int64_t total, const double *add, double extra,
                   double *y, int64_t y_step)
{
    double *row = run_node_zeros(total);
    for (int64_t i = 0; i < places; i++) {
        double high = -INFINITY, sum = extra;
        for (int64_t j = 0; j < total; j++) {
            row[j] = add[i * total + j];
            for (int c = 0; c < D; c++) row[j] += q[i * q_step + c] * k[j * kv_step + c] / sqrt(D);
            high = row[j] > high ? row[j] : high;
        }
        if (extra > 0) high = 0;
        for (int64_t j = 0; j < total; j++) sum += row[j] = exp(row[j] - high);
        for (int c = 0; c < D; c++) {
            y[i * y_step + c] = 0;
            for (int64_t j = 0; j < total; j++)
                y[i * y_step + c] += row[j] / sum * v[j * kv_step + c];
        }
    }
}

/* ---- Attention, QAttention ------------------------------------------------------------------- */

typedef enum projection { FLOATS, BY_TENSOR, BY_COLUMN, WITHOUT_ZEROS } projection;

typedef struct fused {
    clg_dtype dtype;
    int64_t places, past;
    /* 0: none; 1: ends of the keys; 2: ends and starts; 3: [batch, keys]; 4: [batch, queries,
     * keys]. */
    int mask;
    bool causal, bias, present, by_input;
    projection projection;
    clg_dtype weights;    /* dtype of the weights if quantised; dtype is then that of the input */
    double scale, filter; /* 0: not given */
} fused;

enum { WIDTH = 10, COLUMNS = 3 * HIDDEN };

/* The quantised input and weights of QAttention. */
typedef struct quantised {
    double *x, *w, x_scale, x_zero, *w_scale, *w_zero;
    int64_t n_scales;
} quantised;

static double *bytes(clg_dtype dtype, int64_t n)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = floor(x[i] * 127) + (dtype == CLG_UINT8 ? 128 : 0);
    return x;
}

/* Draws quantised input and weights, and sets x and w to the dequantised values. */
static quantised draw_quantised(const fused *t, int64_t rows, double *x, double *w)
{
    const bool zeros = t->projection != WITHOUT_ZEROS;
    quantised q = {.x = bytes(t->dtype, rows * WIDTH),
                   .w = bytes(t->weights, WIDTH * COLUMNS),
                   .x_scale = 0.0078125,
                   .x_zero = zeros ? 31 : 0,
                   .w_scale = run_node_zeros(COLUMNS),
                   .w_zero = run_node_zeros(COLUMNS),
                   .n_scales = t->projection == BY_COLUMN ? COLUMNS : 1};
    for (int64_t i = 0; i < COLUMNS; i++) {
        q.w_scale[i] = t->projection == BY_COLUMN ? 0.004 + 0.00007 * (double)i : 0.006;
        q.w_zero[i] = !zeros ? 0 : t->projection == BY_COLUMN ? (double)(i % 5) : 17;
    }
    for (int64_t i = 0; i < rows * WIDTH; i++) x[i] = (q.x[i] - q.x_zero) * q.x_scale;
    for (int64_t i = 0; i < WIDTH * COLUMNS; i++)
        w[i] = (q.w[i] - q.w_zero[i % COLUMNS]) * q.w_scale[i % COLUMNS];
    return q;
}

/* Returns what the case's mask adds for query i, key j of batch b. */
static double masked(const fused *t, const double *mask, int64_t b, int64_t i, int64_t j)
{
    const int64_t total = t->places + t->past;
    const double hidden = t->filter != 0 ? t->filter : -10000;
    double sum = t->causal && j > i + t->past ? -INFINITY : 0;
    if (t->mask == 1 || t->mask == 2)
        sum += j >= mask[b] || (t->mask == 2 && j < mask[BATCH + b]) ? hidden : 0;
    if (t->mask == 3) sum += mask[b * total + j] > 0 ? 0 : hidden;
    if (t->mask == 4) sum += mask[(b * t->places + i) * total + j] > 0 ? 0 : hidden;
    return sum;
}

/* Fills `present` [2, batch, heads, total, D], keys before values, with the past followed by
 * columns of the projection. */
static void fill_present(const fused *t, const double *past, const double *projected,
                         double *present)
{
    const int64_t total = t->places + t->past;
    for (int64_t p = 0; p < 2 * BATCH * HEADS; p++)
        for (int64_t j = 0; j < total; j++)
            for (int c = 0; c < D; c++)
                present[(p * total + j) * D + c] =
                    j < t->past
                        ? past[(p * t->past + j) * D + c]
                        : projected[(p / HEADS % BATCH * t->places + j - t->past) * 3 * HIDDEN +
                                    (1 + p / HEADS / BATCH) * HIDDEN + p % HEADS * D + c];
}

static void feed_scales(run_node *r, const quantised *q)
{
    run_node_constant(r, CLG_FLOAT32, 0, NULL, &q->x_scale);
    run_node_constant(r, CLG_FLOAT32, DIMS(q->n_scales), q->w_scale);
}

static void feed_zeros(run_node *r, const fused *t, const quantised *q)
{
    if (t->projection == WITHOUT_ZEROS) {
        run_node_absent(r);
        run_node_absent(r);
        return;
    }
    run_node_constant(r, t->dtype, 0, NULL, &q->x_zero);
    run_node_constant(r, t->weights, DIMS(q->n_scales), q->w_zero);
}

static void feed_mask(run_node *r, const fused *t, const double *mask)
{
    const int64_t total = t->places + t->past;
    if (t->mask == 0)
        run_node_absent(r);
    else if (t->mask < 3)
        run_node_input(r, CLG_INT32, DIMS(t->mask * BATCH), mask);
    else if (t->mask == 3)
        run_node_input(r, CLG_INT32, DIMS(BATCH, total), mask);
    else
        run_node_input(r, CLG_INT32, DIMS(BATCH, t->places, total), mask);
}

static void check_fused(fused t)
{
    const clg_dtype floats = t.projection ? CLG_FLOAT32 : t.dtype;
    const int64_t total = t.places + t.past, rows = BATCH * t.places, columns = COLUMNS;
    double *x = run_node_random(rows * WIDTH), *w = run_node_random(WIDTH * columns);
    const double *bias = run_node_random(columns);
    const quantised q = t.projection ? draw_quantised(&t, rows, x, w) : (quantised){0};
    const double *past = run_node_random(2 * BATCH * HEADS * t.past * D),
                 *more = run_node_random(HEADS * t.places * total);
    double *projected = run_node_zeros(rows * columns), *scaled = run_node_zeros(rows * columns),
           *present = run_node_zeros(2 * BATCH * HEADS * total * D);
    double *y = run_node_zeros(rows * HIDDEN), *add = run_node_zeros(t.places * total),
           *mask = run_node_random(BATCH * t.places * total);
    for (int64_t i = 0; i < BATCH * t.places * total; i++)
        mask[i] = mask[i] > -0.5 || i % total == 0;
    if (t.mask == 1 || t.mask == 2)
        memcpy(mask, (double[]){(double)total, (double)total - 2, 1, 0}, 4 * sizeof *mask);
    for (int64_t i = 0; i < rows * columns; i++) {
        projected[i] = bias[i % columns];
        for (int k = 0; k < WIDTH; k++)
            projected[i] += x[i / columns * WIDTH + k] * w[k * columns + i % columns];
    }
    fill_present(&t, past, projected, present);
    /* attend() scales by 1 / sqrt(D): apply another scale to the queries. */
    for (int64_t i = 0; i < rows * columns; i++)
        scaled[i] = projected[i] * (t.scale != 0 ? t.scale * sqrt(D) : 1);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS; h++) {
            for (int64_t i = 0; i < t.places * total; i++)
                add[i] = masked(&t, mask, b, i / total, i % total) +
                         (t.bias ? more[h * t.places * total + i] : 0);
            const double *k = present + (b * HEADS + h) * total * D,
                         *v = k + BATCH * HEADS * total * D;
            attend(scaled + b * t.places * columns + h * D, columns, k, v, D, t.places, total, add,
                   0, y + b * t.places * HIDDEN + h * D, HIDDEN);
        }
    run_node r;
    run_node_start(&r, "com.microsoft", t.projection ? "QAttention" : "Attention", 1);
    run_node_int(&r, "num_heads", HEADS);
    run_node_int(&r, "unidirectional", t.causal);
    if (t.scale != 0) run_node_float(&r, "scale", t.scale);
    if (t.filter != 0) run_node_float(&r, "mask_filter_value", t.filter);
    run_node_input(&r, t.dtype, DIMS(BATCH, t.places, WIDTH), t.projection ? q.x : x);
    (t.by_input ? run_node_input : run_node_constant)(&r, t.projection ? t.weights : t.dtype,
                                                      DIMS(WIDTH, COLUMNS), t.projection ? q.w : w);
    run_node_constant(&r, floats, DIMS(COLUMNS), bias);
    if (t.projection) feed_scales(&r, &q);
    feed_mask(&r, &t, mask);
    if (t.projection) feed_zeros(&r, &t, &q);
    if (t.past)
        run_node_input(&r, floats, DIMS(2, BATCH, HEADS, t.past, D), past);
    else
        run_node_absent(&r);
    if (t.bias) run_node_input(&r, floats, DIMS(1, HEADS, t.places, total), more);
    run_node_expect(&r, floats, DIMS(BATCH, t.places, HIDDEN), y);
    if (t.present) run_node_expect(&r, floats, DIMS(2, BATCH, HEADS, total, D), present);
    run_node_check_scaled(&r, t.dtype == CLG_FLOAT16 ? 6e-3 : 2e-5, 3);
}

TEST(attention_fused__attention)
{
    const fused plain = {.dtype = CLG_FLOAT32, .places = 9};
    for (int mask = 0; mask < 5; mask++) {
        fused t = plain;
        t.mask = mask;
        t.present = mask == 2;
        check_fused(t);
    }
    fused t = plain;
    t.mask = 3;
    t.causal = t.present = true;
    t.bias = true;
    check_fused(t);
    t.bias = false;
    t.past = 4;
    t.by_input = true;
    check_fused(t);
    t.by_input = false;
    t.dtype = CLG_FLOAT16;
    check_fused(t);
    check_fused((fused){
        .dtype = CLG_FLOAT32, .places = 1, .past = 6, .mask = 4, .causal = true, .bias = true});
}

TEST(attention_fused__quantised)
{
    const fused plain = {
        .dtype = CLG_UINT8, .places = 9, .projection = BY_TENSOR, .weights = CLG_UINT8};
    for (int mask = 0; mask < 5; mask++) {
        fused t = plain;
        t.mask = mask;
        t.weights = mask % 2 ? CLG_INT8 : CLG_UINT8;
        check_fused(t);
    }
    fused t = plain;
    t.projection = BY_COLUMN;
    t.weights = CLG_INT8;
    t.causal = t.present = true;
    t.past = 4;
    t.mask = 3;
    check_fused(t);
    t.places = 1;
    t.dtype = CLG_INT8;
    t.mask = 4;
    t.by_input = true;
    check_fused(t);
    t.projection = WITHOUT_ZEROS;
    t.places = 5;
    t.past = 0;
    t.scale = 0.5;
    t.filter = -3; /* small, so that masked keys still count */
    check_fused(t);
}

/* ---- MultiHeadAttention ---------------------------------------------------------------------- */

enum { SEPARATE, BY_HEAD, PACKED_KV, PACKED_QKV }; /* how queries, keys and values are given */

typedef struct multi {
    int form;
    int64_t past;
    bool causal, bias;
} multi;

/* Returns a copy of x [rows, n] with b[c] added to column c. */
static double *with_bias(const double *x, int64_t rows, int64_t n, const double *b)
{
    double *sum = run_node_zeros(rows * n);
    for (int64_t i = 0; i < rows * n; i++) sum[i] = x[i] + b[i % n];
    return sum;
}

/* Adds an input [BATCH, positions, HEADS, n, D] that is packed of n arrays [BATCH, positions,
 * HIDDEN]. */
static void packed_input(run_node *r, int64_t positions, int64_t n, const double *const *parts)
{
    double *x = run_node_zeros(BATCH * positions * HIDDEN * n);
    for (int64_t i = 0; i < BATCH * positions * HIDDEN * n; i++) {
        const int64_t c = i % D, part = i / D % n, h = i / D / n % HEADS, row = i / D / n / HEADS;
        x[i] = parts[part][row * HIDDEN + h * D + c];
    }
    run_node_input(r, CLG_FLOAT32, DIMS(BATCH, positions, HEADS, n, D), x);
}

static void multi_inputs(run_node *r, const multi *t, int64_t places, int64_t n_keys,
                         const double *const *qkv)
{
    if (t->form == PACKED_QKV)
        packed_input(r, places, 3, qkv);
    else
        run_node_input(r, CLG_FLOAT32, DIMS(BATCH, places, HIDDEN), qkv[0]);
    if (t->form == PACKED_KV) packed_input(r, n_keys, 2, qkv + 1);
    for (int i = 1; i < 3 && t->form <= BY_HEAD; i++) {
        if (t->form == BY_HEAD)
            run_node_input(r, CLG_FLOAT32, DIMS(BATCH, HEADS, n_keys, D), qkv[i]);
        else
            run_node_input(r, CLG_FLOAT32, DIMS(BATCH, n_keys, HIDDEN), qkv[i]);
    }
    if (t->bias || t->past)
        for (int n = t->form == PACKED_QKV ? 2 : t->form == PACKED_KV ? 1 : 0; n > 0; n--)
            run_node_absent(r);
}

/* The bias of queries is always added, that of keys and values unless they come by heads. */
static void check_multi(multi t)
{
    enum { PLACES = 6 };
    const int64_t n_keys = t.form == PACKED_QKV ? PLACES : 5, total = n_keys + t.past;
    const bool by_head = t.form == BY_HEAD;
    const double *b = run_node_random(3 * HIDDEN),
                 *past_k = run_node_random(BATCH * HEADS * t.past * D),
                 *past_v = run_node_random(BATCH * HEADS * t.past * D), *given[3], *qkv[3];
    for (int i = 0; i < 3; i++) {
        const int64_t rows = BATCH * (i == 0 ? PLACES : n_keys);
        given[i] = qkv[i] = run_node_random(rows * HIDDEN);
        if (t.bias && !(by_head && i > 0))
            qkv[i] = with_bias(given[i], rows, HIDDEN, b + i * HIDDEN);
    }
    double *y = run_node_zeros(BATCH * PLACES * HIDDEN), *add = run_node_zeros(PLACES * total);
    double *all[2] = {run_node_zeros(BATCH * HEADS * total * D),
                      run_node_zeros(BATCH * HEADS * total * D)};
    for (int64_t i = 0; i < BATCH * HEADS * total * D; i++) {
        const int64_t c = i % D, j = i / D % total, h = i / D / total % HEADS,
                      at = i / D / total / HEADS, n = j - t.past;
        const int64_t fresh = by_head ? ((at * HEADS + h) * n_keys + n) * D + c
                                      : ((at * n_keys + n) * HEADS + h) * D + c;
        all[0][i] = j < t.past ? past_k[((at * HEADS + h) * t.past + j) * D + c] : qkv[1][fresh];
        all[1][i] = j < t.past ? past_v[((at * HEADS + h) * t.past + j) * D + c] : qkv[2][fresh];
    }
    for (int64_t i = 0; t.causal && i < PLACES * total; i++)
        add[i] = i % total > i / total + total - PLACES ? -10000 : 0;
    for (int64_t at = 0; at < BATCH; at++)
        for (int64_t h = 0; h < HEADS; h++)
            attend(qkv[0] + at * PLACES * HIDDEN + h * D, HIDDEN,
                   all[0] + (at * HEADS + h) * total * D, all[1] + (at * HEADS + h) * total * D, D,
                   PLACES, total, add, 0, y + at * PLACES * HIDDEN + h * D, HIDDEN);
    run_node r;
    run_node_start(&r, "com.microsoft", "MultiHeadAttention", 1);
    run_node_int(&r, "num_heads", HEADS);
    if (t.causal) run_node_int(&r, "unidirectional", 1);
    multi_inputs(&r, &t, PLACES, n_keys, given);
    if (t.bias)
        run_node_input(&r, CLG_FLOAT32, DIMS(3 * HIDDEN), b);
    else if (t.past)
        run_node_absent(&r);
    for (int i = 0; i < 2 && t.past; i++) run_node_absent(&r);
    if (t.past) run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, t.past, D), past_k);
    if (t.past) run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, t.past, D), past_v);
    run_node_expect(&r, CLG_FLOAT32, DIMS(BATCH, PLACES, HIDDEN), y);
    for (int i = 0; i < 2 && t.past; i++)
        run_node_expect(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, total, D), all[i]);
    run_node_check(&r, 2e-5);
}

TEST(attention_fused__multi_head)
{
    for (int bias = 0; bias < 2; bias++)
        for (int form = SEPARATE; form <= PACKED_QKV; form++) {
            check_multi((multi){.form = form, .bias = bias});
            check_multi((multi){.form = form, .bias = bias, .past = 3, .causal = true});
        }
}

/* ---- GroupQueryAttention --------------------------------------------------------------------- */

typedef struct gqa {
    clg_dtype dtype;
    int64_t places, past, total; /* past: capacity of the past's buffer, in positions */
    const double *seqlens;
    bool packed, rotary, smooth;
    int64_t window;
} gqa;

enum { Q_HEADS = 4, KV_HEADS = 2, GROUP = Q_HEADS / KV_HEADS, ROWS = 32 };

static int64_t start_of(const gqa *t, int64_t b)
{
    return t->places == t->total ? 0 : (int64_t)t->seqlens[b] + 1 - t->places;
}

/* Returns a copy of rows of D elements, rotated by their positions if the case has `rotary`. */
static double *rotated(const gqa *t, const double *x, int64_t heads, const double *cosines,
                       const double *sines)
{
    double *y = run_node_zeros(BATCH * t->places * heads * D);
    for (int64_t i = 0; i < BATCH * t->places * heads * D; i++) {
        const int64_t c = i % D,
                      place = i / D / heads % t->places + start_of(t, i / D / heads / t->places),
                      half = D / 2;
        const double co = cosines[place * half + c % half], si = sines[place * half + c % half];
        y[i] = !t->rotary ? x[i]
               : c < half ? x[i] * co - x[i + half] * si
                          : x[i] * co + x[i - half] * si;
    }
    return y;
}

static void fill_cache(const gqa *t, const double *past, const double *fresh, int64_t length,
                       double *cache)
{
    for (int64_t i = 0; i < BATCH * KV_HEADS * length * D; i++) {
        const int64_t c = i % D, j = i / D % length, h = i / D / length % KV_HEADS,
                      b = i / D / length / KV_HEADS;
        const int64_t n = j - start_of(t, b);
        if (n >= 0 && n < t->places)
            cache[i] = fresh[((b * t->places + n) * KV_HEADS + h) * D + c];
        else if (j < t->past && (n < 0 || t->past >= t->total))
            cache[i] = past[((b * KV_HEADS + h) * t->past + j) * D + c];
    }
}

static void reference(const gqa *t, const double *q, const double *k, const double *v,
                      int64_t length, double *y)
{
    double *add = run_node_zeros(t->places * t->total);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < Q_HEADS; h++) {
            for (int64_t i = 0; i < t->places * t->total; i++) {
                const int64_t last = i / t->total + start_of(t, b), j = i % t->total;
                add[i] = j > last || (t->window > 0 && j < last - t->window) ? -INFINITY : 0;
            }
            const int64_t at = (b * KV_HEADS + h / GROUP) * length * D;
            attend(q + (b * t->places * Q_HEADS + h) * D, Q_HEADS * D, k + at, v + at, D, t->places,
                   t->total, add, t->smooth, y + (b * t->places * Q_HEADS + h) * D, Q_HEADS * D);
        }
}

static void add_queries(run_node *r, const gqa *t, const double *q, const double *k,
                        const double *v)
{
    const int64_t wide = (Q_HEADS + 2 * KV_HEADS) * D;
    if (t->packed) {
        double *all = run_node_zeros(BATCH * t->places * wide);
        for (int64_t i = 0; i < BATCH * t->places * wide; i++) {
            const int64_t row = i / wide, h = i % wide / D, c = i % D;
            all[i] = h < Q_HEADS ? q[(row * Q_HEADS + h) * D + c]
                     : h < Q_HEADS + KV_HEADS
                         ? k[(row * KV_HEADS + h - Q_HEADS) * D + c]
                         : v[(row * KV_HEADS + h - Q_HEADS - KV_HEADS) * D + c];
        }
        run_node_input(r, t->dtype, DIMS(BATCH, t->places, wide), all);
        run_node_absent(r);
        run_node_absent(r);
        return;
    }
    run_node_input(r, t->dtype, DIMS(BATCH, t->places, Q_HEADS * D), q);
    run_node_input(r, t->dtype, DIMS(BATCH, t->places, KV_HEADS * D), k);
    run_node_input(r, t->dtype, DIMS(BATCH, t->places, KV_HEADS * D), v);
}

static void check_gqa(gqa t)
{
    const int64_t n = BATCH * t.places * D, length = t.total > t.past ? t.total : t.past,
                  n_cache = BATCH * KV_HEADS * length * D;
    const double *q = run_node_random(n * Q_HEADS), *k = run_node_random(n * KV_HEADS),
                 *v = run_node_random(n * KV_HEADS);
    const double *past_k = run_node_random(BATCH * KV_HEADS * t.past * D),
                 *past_v = run_node_random(BATCH * KV_HEADS * t.past * D);
    const double *cosines = run_node_random(ROWS * D / 2), *sines = run_node_random(ROWS * D / 2),
                 total = (double)t.total;
    double *keys = run_node_zeros(n_cache), *values = run_node_zeros(n_cache),
           *y = run_node_zeros(n * Q_HEADS);
    fill_cache(&t, past_k, rotated(&t, k, KV_HEADS, cosines, sines), length, keys);
    fill_cache(&t, past_v, v, length, values);
    reference(&t, rotated(&t, q, Q_HEADS, cosines, sines), keys, values, length, y);
    run_node r;
    run_node_start(&r, "com.microsoft", "GroupQueryAttention", 1);
    run_node_int(&r, "num_heads", Q_HEADS);
    run_node_int(&r, "kv_num_heads", KV_HEADS);
    run_node_int(&r, "do_rotary", t.rotary);
    if (t.window) run_node_int(&r, "local_window_size", t.window);
    if (t.smooth) run_node_int(&r, "smooth_softmax", 1);
    if (t.places == 9) { /* defaults, as ONNX Runtime writes them into its graphs */
        run_node_int(&r, "causal", 1);
        run_node_int(&r, "qk_output", 0);
        run_node_int(&r, "sliding_window_cache", 0);
        run_node_string(&r, "k_quant_type", "NONE");
        run_node_string(&r, "v_quant_type", "NONE");
    }
    add_queries(&r, &t, q, k, v);
    for (int i = 0; i < 2; i++) {
        if (t.past)
            run_node_input(&r, t.dtype, DIMS(BATCH, KV_HEADS, t.past, D), i ? past_v : past_k);
        else
            run_node_absent(&r);
    }
    run_node_input(&r, CLG_INT32, DIMS(BATCH), t.seqlens);
    run_node_constant(&r, CLG_INT32, 0, NULL, &total);
    if (t.rotary) run_node_constant(&r, t.dtype, DIMS(ROWS, D / 2), cosines);
    if (t.rotary) run_node_constant(&r, t.dtype, DIMS(ROWS, D / 2), sines);
    run_node_expect(&r, t.dtype, DIMS(BATCH, t.places, Q_HEADS * D), y);
    run_node_expect(&r, t.dtype, DIMS(BATCH, KV_HEADS, length, D), keys);
    run_node_expect(&r, t.dtype, DIMS(BATCH, KV_HEADS, length, D), values);
    run_node_check(&r, t.dtype == CLG_FLOAT16 ? 6e-3 : 2e-5);
}

TEST(attention_fused__group_query)
{
    check_gqa((gqa){CLG_FLOAT32, 9, 0, 9, (double[]){8, 8}, false, false, false, 0});
    check_gqa((gqa){CLG_FLOAT32, 9, 0, 9, (double[]){8, 5}, true, true, false, 3});
    check_gqa((gqa){CLG_FLOAT32, 1, 7, 8, (double[]){7, 7}, false, true, true, 0});
    check_gqa((gqa){CLG_FLOAT32, 1, 7, 8, (double[]){7, 4}, true, false, false, 2}); /* ragged */
    check_gqa((gqa){CLG_FLOAT32, 2, 16, 8, (double[]){7, 5}, false, true, false,
                    0}); /* a past buffer with free capacity */
    check_gqa((gqa){CLG_FLOAT32, 5, 16, 5, (double[]){4, 3}, false, false, false,
                    0}); /* a prompt into such a buffer */
    check_gqa((gqa){CLG_FLOAT16, 1, 7, 8, (double[]){7, 7}, false, true, false, 0});
}

static void group_query(run_node *r, int64_t heads, const char *attribute, int64_t value)
{
    static const double x[64] = {0}, total = 2;
    run_node_start(r, "com.microsoft", "GroupQueryAttention", 1);
    run_node_int(r, "num_heads", heads);
    run_node_int(r, "kv_num_heads", 2);
    if (attribute) run_node_int(r, attribute, value);
    run_node_input(r, CLG_FLOAT32, DIMS(1, 2, 4 * heads), x);
    run_node_input(r, CLG_FLOAT32, DIMS(1, 2, 8), x);
    run_node_input(r, CLG_FLOAT32, DIMS(1, 2, 8), x);
    run_node_absent(r);
    run_node_absent(r);
    run_node_input(r, CLG_INT32, DIMS(1), x);
    run_node_constant(r, CLG_INT32, 0, NULL, &total);
    run_node_expect(r, CLG_FLOAT32, DIMS(1, 2, 4 * heads), x);
}

TEST(attention_fused__refuses)
{
    run_node r;
    group_query(&r, 3, NULL, 0);
    run_node_refused(&r, CLG_ERROR_SHAPE, "do not go together");
    group_query(&r, 4, "qk_output", 1);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "qk_output is only supported as 0");
    group_query(&r, 4, "sliding_window_cache", 1);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "sliding_window_cache");
    group_query(&r, 4, "causal", 0);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "causal is only supported as 1");
}

static void qattention(run_node *r, const char *attribute, int64_t n_scales)
{
    static const double x[64] = {0};
    run_node_start(r, "com.microsoft", "QAttention", 1);
    run_node_int(r, "num_heads", 2);
    if (attribute) run_node_int(r, attribute, 1);
    run_node_input(r, CLG_UINT8, DIMS(1, 2, 4), x);
    run_node_constant(r, CLG_INT8, DIMS(4, 12), x);
    run_node_constant(r, CLG_FLOAT32, DIMS(12), x);
    run_node_constant(r, CLG_FLOAT32, 0, NULL, x);
    run_node_constant(r, CLG_FLOAT32, DIMS(n_scales), x);
    run_node_expect(r, CLG_FLOAT32, DIMS(1, 2, 4), x);
}

TEST(attention_fused__quantised_refuses)
{
    run_node r;
    qattention(&r, "do_rotary", 1);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "do_rotary");
    qattention(&r, "past_present_share_buffer", 1);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "past_present_share_buffer");
    qattention(&r, NULL, 5);
    run_node_refused(&r, CLG_ERROR_SHAPE, "the scale of B has 5 numbers");
}

TEST_GROUP(run_node_open, run_node_close)
