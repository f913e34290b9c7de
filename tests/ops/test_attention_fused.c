/* SPDX-License-Identifier: Apache-2.0
 *
 * com.microsoft's Attention, MultiHeadAttention and GroupQueryAttention against the plain formula in double. What is
 * masked adds a large negative number; the sizes keep tests few, test_attention.c has the kernel's.
 * float32: 2e-5; float16: 6e-3 of numbers of size 1.
 */
#include "support/run_node.h"

#include <math.h>
#include <string.h>

enum { BATCH = 2, HEADS = 3, D = 8, HIDDEN = HEADS * D };

/* y[i] = attention of q [places, D] over k, v [total, D]; add[i * total + j] is added to scores. Strides in numbers. */
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

/* ---- Attention ------------------------------------------------------------------------------------------------ */

typedef struct fused {
    clg_dtype dtype;
    int64_t places, past;
    int mask; /* 0 none, 1 ends, 2 ends and starts, 3 [batch, keys], 4 [batch, queries, keys] */
    bool causal, bias, present, by_input;
} fused;

enum { WIDTH = 10 };

/* The mask of the case, and what it adds for query i, key j of batch b. */
static double masked(const fused *t, const double *mask, int64_t b, int64_t i, int64_t j)
{
    const int64_t total = t->places + t->past;
    double sum = t->causal && j > i + t->past ? -10000 : 0;
    if (t->mask == 1 || t->mask == 2)
        sum += j >= mask[b] || (t->mask == 2 && j < mask[BATCH + b]) ? -10000 : 0;
    if (t->mask == 3) sum += mask[b * total + j] > 0 ? 0 : -10000;
    if (t->mask == 4) sum += mask[(b * t->places + i) * total + j] > 0 ? 0 : -10000;
    return sum;
}

/* Keys (part 1) or values (2) of [2, batch, heads, total, D]: the past, then columns of the projection. */
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

static void check_fused(fused t)
{
    const int64_t total = t.places + t.past, rows = BATCH * t.places, columns = 3 * HIDDEN;
    const double *x = run_node_random(rows * WIDTH), *w = run_node_random(WIDTH * columns),
                 *bias = run_node_random(columns);
    const double *past = run_node_random(2 * BATCH * HEADS * t.past * D),
                 *more = run_node_random(HEADS * t.places * total);
    double *projected = run_node_zeros(rows * columns),
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
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS; h++) {
            for (int64_t i = 0; i < t.places * total; i++)
                add[i] = masked(&t, mask, b, i / total, i % total) +
                         (t.bias ? more[h * t.places * total + i] : 0);
            const double *k = present + (b * HEADS + h) * total * D,
                         *v = k + BATCH * HEADS * total * D;
            attend(projected + b * t.places * columns + h * D, columns, k, v, D, t.places, total,
                   add, 0, y + b * t.places * HIDDEN + h * D, HIDDEN);
        }
    run_node r;
    run_node_start(&r, "com.microsoft", "Attention", 1);
    run_node_int(&r, "num_heads", HEADS);
    run_node_int(&r, "unidirectional", t.causal);
    run_node_input(&r, t.dtype, DIMS(BATCH, t.places, WIDTH), x);
    (t.by_input ? run_node_input : run_node_constant)(&r, t.dtype, DIMS(WIDTH, columns), w);
    run_node_constant(&r, t.dtype, DIMS(columns), bias);
    if (t.mask == 0)
        run_node_absent(&r);
    else if (t.mask < 3)
        run_node_input(&r, CLG_INT32, DIMS(t.mask * BATCH), mask);
    else if (t.mask == 3)
        run_node_input(&r, CLG_INT32, DIMS(BATCH, total), mask);
    else
        run_node_input(&r, CLG_INT32, DIMS(BATCH, t.places, total), mask);
    if (t.past)
        run_node_input(&r, t.dtype, DIMS(2, BATCH, HEADS, t.past, D), past);
    else
        run_node_absent(&r);
    if (t.bias) run_node_input(&r, t.dtype, DIMS(1, HEADS, t.places, total), more);
    run_node_expect(&r, t.dtype, DIMS(BATCH, t.places, HIDDEN), y);
    if (t.present) run_node_expect(&r, t.dtype, DIMS(2, BATCH, HEADS, total, D), present);
    run_node_check_scaled(&r, t.dtype == CLG_FLOAT16 ? 6e-3 : 2e-5, 3);
}

static void attention_fused__attention(void **state)
{
    (void)state;
    for (int mask = 0; mask < 5; mask++)
        check_fused((fused){CLG_FLOAT32, 9, 0, mask, false, false, mask == 2, false});
    check_fused((fused){CLG_FLOAT32, 9, 0, 3, true, true, true, false});
    check_fused((fused){CLG_FLOAT32, 9, 4, 3, true, false, true, true});
    check_fused((fused){CLG_FLOAT32, 1, 6, 4, true, true, false, false});
    check_fused((fused){CLG_FLOAT16, 9, 4, 3, true, false, true, false});
}

/* ---- MultiHeadAttention ------------------------------------------------------------------------------------------- */

static void check_multi(bool by_head, int64_t past, bool causal)
{
    enum { PLACES = 6, KEYS = 5 };
    const int64_t total = KEYS + past;
    const double *q = run_node_random(BATCH * PLACES * HIDDEN),
                 *k = run_node_random(BATCH * KEYS * HIDDEN);
    const double *v = run_node_random(BATCH * KEYS * HIDDEN),
                 *past_k = run_node_random(BATCH * HEADS * past * D);
    const double *past_v = run_node_random(BATCH * HEADS * past * D);
    double *y = run_node_zeros(BATCH * PLACES * HIDDEN), *add = run_node_zeros(PLACES * total);
    double *all[2] = {run_node_zeros(BATCH * HEADS * total * D),
                      run_node_zeros(BATCH * HEADS * total * D)};
    for (int64_t i = 0; i < BATCH * HEADS * total * D; i++) {
        const int64_t c = i % D, j = i / D % total, h = i / D / total % HEADS,
                      b = i / D / total / HEADS, n = j - past;
        const int64_t fresh =
            by_head ? ((b * HEADS + h) * KEYS + n) * D + c : ((b * KEYS + n) * HEADS + h) * D + c;
        all[0][i] = j < past ? past_k[((b * HEADS + h) * past + j) * D + c] : k[fresh];
        all[1][i] = j < past ? past_v[((b * HEADS + h) * past + j) * D + c] : v[fresh];
    }
    for (int64_t i = 0; causal && i < PLACES * total; i++)
        add[i] = i % total > i / total + total - PLACES ? -10000 : 0;
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS; h++)
            attend(q + b * PLACES * HIDDEN + h * D, HIDDEN, all[0] + (b * HEADS + h) * total * D,
                   all[1] + (b * HEADS + h) * total * D, D, PLACES, total, add, 0,
                   y + b * PLACES * HIDDEN + h * D, HIDDEN);
    run_node r;
    run_node_start(&r, "com.microsoft", "MultiHeadAttention", 1);
    run_node_int(&r, "num_heads", HEADS);
    if (causal) run_node_int(&r, "unidirectional", 1);
    run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, PLACES, HIDDEN), q);
    for (int i = 0; i < 2; i++) {
        if (by_head)
            run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, KEYS, D), i ? v : k);
        else
            run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, KEYS, HIDDEN), i ? v : k);
    }
    for (int i = 0; i < 3 && past; i++) run_node_absent(&r);
    if (past) run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, past, D), past_k);
    if (past) run_node_input(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, past, D), past_v);
    run_node_expect(&r, CLG_FLOAT32, DIMS(BATCH, PLACES, HIDDEN), y);
    for (int i = 0; i < 2 && past; i++)
        run_node_expect(&r, CLG_FLOAT32, DIMS(BATCH, HEADS, total, D), all[i]);
    run_node_check(&r, 2e-5);
}

static void attention_fused__multi_head(void **state)
{
    (void)state;
    check_multi(false, 0, false);
    check_multi(true, 0, false);
    check_multi(false, 3, true);
}

/* ---- GroupQueryAttention ------------------------------------------------------------------------------------------ */

typedef struct gqa {
    clg_dtype dtype;
    int64_t places, past, total; /* past: places of the past's buffer */
    const double *seqlens;
    bool packed, rotary, smooth;
    int64_t window;
} gqa;

enum { Q_HEADS = 4, KV_HEADS = 2, GROUP = Q_HEADS / KV_HEADS, ROWS = 32 };

static int64_t start_of(const gqa *t, int64_t b)
{
    return t->places == t->total ? 0 : (int64_t)t->seqlens[b] + 1 - t->places;
}

/* Rows of D numbers turned by their places, in a copy. */
static double *turned(const gqa *t, const double *x, int64_t heads, const double *cosines,
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
    fill_cache(&t, past_k, turned(&t, k, KV_HEADS, cosines, sines), length, keys);
    fill_cache(&t, past_v, v, length, values);
    reference(&t, turned(&t, q, Q_HEADS, cosines, sines), keys, values, length, y);
    run_node r;
    run_node_start(&r, "com.microsoft", "GroupQueryAttention", 1);
    run_node_int(&r, "num_heads", Q_HEADS);
    run_node_int(&r, "kv_num_heads", KV_HEADS);
    run_node_int(&r, "do_rotary", t.rotary);
    if (t.window) run_node_int(&r, "local_window_size", t.window);
    if (t.smooth) run_node_int(&r, "smooth_softmax", 1);
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

static void attention_fused__group_query(void **state)
{
    (void)state;
    check_gqa((gqa){CLG_FLOAT32, 9, 0, 9, (double[]){8, 8}, false, false, false, 0});
    check_gqa((gqa){CLG_FLOAT32, 9, 0, 9, (double[]){8, 5}, true, true, false, 3});
    check_gqa((gqa){CLG_FLOAT32, 1, 7, 8, (double[]){7, 7}, false, true, true, 0});
    check_gqa((gqa){CLG_FLOAT32, 1, 7, 8, (double[]){7, 4}, true, false, false, 2}); /* ragged */
    check_gqa((gqa){CLG_FLOAT32, 2, 16, 8, (double[]){7, 5}, false, true, false,
                    0}); /* a buffer with room */
    check_gqa((gqa){CLG_FLOAT32, 5, 16, 5, (double[]){4, 3}, false, false, false,
                    0}); /* a prompt into one */
    check_gqa((gqa){CLG_FLOAT16, 1, 7, 8, (double[]){7, 7}, false, true, false, 0});
}

static void attention_fused__refuses(void **state)
{
    (void)state;
    const double x[64] = {0}, total = 2;
    run_node r;
    run_node_start(&r, "com.microsoft", "GroupQueryAttention", 1);
    run_node_int(&r, "num_heads", 3);
    run_node_int(&r, "kv_num_heads", 2);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 12), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 8), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 8), x);
    run_node_absent(&r);
    run_node_absent(&r);
    run_node_input(&r, CLG_INT32, DIMS(1), x);
    run_node_constant(&r, CLG_INT32, 0, NULL, &total);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 2, 12), x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "do not go together");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_fused__attention),
        cmocka_unit_test(attention_fused__multi_head),
        cmocka_unit_test(attention_fused__group_query),
        cmocka_unit_test(attention_fused__refuses),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
