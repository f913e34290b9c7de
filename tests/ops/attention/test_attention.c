/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Attention of opsets 23 to 25 with the plain formula, with a full matrix of scores, in
 * double; and RotaryEmbedding with products of complex numbers.
 *
 * Tolerance: float32 2e-5, for sums of a few hundred products of magnitude 1 and exponentials.
 * float16 4e-3 and bfloat16 3e-2: they store 11 and 8 significant bits.
 */
#include "support/cases/run_node.h"

#include <complex.h>
#include <math.h>
#include <string.h>

typedef struct attention {
    clg_dtype dtype;
    int64_t batch, heads, kv_heads, q_len, kv_len, past, d, dv;
    bool by_position, causal, present;
    int mask; /* 0: none; 1: bool; 2: float, added to the scores */
    /* 4: the mask is [batch, 1, q, keys]; otherwise [q, keys]. */
    int mask_rank;
    int64_t mask_short; /* number of last keys that the mask does not cover */
    const double *lengths;
    double scale, softcap;
    int mode;            /* qk_matmul_output_mode; -1: no such output */
    int64_t left, right; /* window sizes + 1; 0: none */
} attention;

/* Returns the index of element (b, h, i, c) of a tensor of n_heads heads, `places` positions and d
 * elements per position, in the layout of the case. */
static int64_t at(const attention *t, int64_t n_heads, int64_t places, int64_t d, int64_t b,
                  int64_t h, int64_t i, int64_t c)
{
    return t->by_position ? ((b * places + i) * n_heads + h) * d + c
                          : ((b * n_heads + h) * places + i) * d + c;
}

static int64_t by_head(int64_t n_heads, int64_t places, int64_t d, int64_t b, int64_t h, int64_t i,
                       int64_t c)
{
    return ((b * n_heads + h) * places + i) * d + c;
}

static double mask_of(const attention *t, const double *mask, int64_t b, int64_t i, int64_t j)
{
    const int64_t total = t->past + t->kv_len, keys = total - t->mask_short;
    double sum = 0;
    if (t->mask && j >= keys) return -INFINITY;
    if (t->mask) {
        const double m = mask[((t->mask_rank == 4 ? b : 0) * t->q_len + i) * keys + j];
        sum += t->mask == 2 ? m : m != 0 ? 0 : -INFINITY;
    }
    int64_t offset = t->past;
    if (t->lengths && t->past == 0) offset = (int64_t)t->lengths[b] - t->q_len;
    if (t->causal && j > i + offset) sum = -INFINITY;
    if (t->left && j < i + offset - (t->left - 1)) sum = -INFINITY;
    if (t->right && j > i + offset + (t->right - 1)) sum = -INFINITY;
    if (t->lengths && j >= (int64_t)t->lengths[b]) sum = -INFINITY;
    return sum;
}

typedef struct tensors {
    double *q, *k, *v, *past_k, *past_v, *mask, *present_k, *present_v, *y, *scores;
} tensors;

static void compute(const attention *t, const tensors *m)
{
    const int64_t total = t->past + t->kv_len;
    const double scale = isnan(t->scale) ? 1 / sqrt((double)t->d) : t->scale;
    double *row = run_node_zeros(total);
    for (int64_t b = 0; b < t->batch; b++)
        for (int64_t h = 0; h < t->heads; h++)
            for (int64_t i = 0; i < t->q_len; i++) {
                const int64_t g = h / (t->heads / t->kv_heads);
                double high = -INFINITY, sum = 0;
                for (int64_t j = 0; j < total; j++) {
                    double *out = &m->scores[((b * t->heads + h) * t->q_len + i) * total + j];
                    double s = 0;
                    for (int64_t c = 0; c < t->d; c++)
                        s += m->q[at(t, t->heads, t->q_len, t->d, b, h, i, c)] *
                             m->present_k[by_head(t->kv_heads, total, t->d, b, g, j, c)];
                    s *= scale;
                    if (t->mode == 0) *out = s;
                    if (t->softcap > 0) s = t->softcap * tanh(s / t->softcap);
                    if (t->mode == 1) *out = s;
                    s += mask_of(t, m->mask, b, i, j);
                    if (t->mode == 2) *out = s;
                    row[j] = s;
                    high = s > high ? s : high;
                }
                for (int64_t j = 0; j < total; j++)
                    sum += row[j] = high == -INFINITY ? 0 : exp(row[j] - high);
                for (int64_t c = 0; c < t->dv; c++) {
                    double y = 0;
                    for (int64_t j = 0; j < total && sum > 0; j++)
                        y += row[j] / sum *
                             m->present_v[by_head(t->kv_heads, total, t->dv, b, g, j, c)];
                    m->y[at(t, t->heads, t->q_len, t->dv, b, h, i, c)] = y;
                }
                for (int64_t j = 0; t->mode == 3 && j < total; j++)
                    m->scores[((b * t->heads + h) * t->q_len + i) * total + j] =
                        sum > 0 ? row[j] / sum : 0;
            }
}

static void fill_present(const attention *t, const double *past, const double *fresh, int64_t d,
                         double *present)
{
    const int64_t total = t->past + t->kv_len;
    for (int64_t b = 0; b < t->batch; b++)
        for (int64_t h = 0; h < t->kv_heads; h++)
            for (int64_t j = 0; j < total; j++)
                for (int64_t c = 0; c < d; c++)
                    present[by_head(t->kv_heads, total, d, b, h, j, c)] =
                        j < t->past ? past[by_head(t->kv_heads, t->past, d, b, h, j, c)]
                                    : fresh[at(t, t->kv_heads, t->kv_len, d, b, h, j - t->past, c)];
}

static tensors make(const attention *t)
{
    const int64_t total = t->past + t->kv_len, b = t->batch, g = t->kv_heads,
                  keys = total - t->mask_short;
    tensors m = {.q = run_node_random(b * t->heads * t->q_len * t->d),
                 .k = run_node_random(b * g * t->kv_len * t->d),
                 .v = run_node_random(b * g * t->kv_len * t->dv),
                 .past_k = run_node_random(b * g * t->past * t->d),
                 .past_v = run_node_random(b * g * t->past * t->dv),
                 .mask = run_node_random(b * t->q_len * keys),
                 .present_k = run_node_zeros(b * g * total * t->d),
                 .present_v = run_node_zeros(b * g * total * t->dv),
                 .y = run_node_zeros(b * t->heads * t->q_len * t->dv),
                 .scores = run_node_zeros(b * t->heads * t->q_len * total)};
    for (int64_t i = 0; t->mask == 1 && i < b * t->q_len * keys; i++) m.mask[i] = m.mask[i] > -0.4;
    fill_present(t, m.past_k, m.k, t->d, m.present_k);
    fill_present(t, m.past_v, m.v, t->dv, m.present_v);
    compute(t, &m);
    return m;
}

static void input(run_node *r, const attention *t, int64_t heads, int64_t places, int64_t d,
                  const double *numbers)
{
    if (t->by_position)
        run_node_input(r, t->dtype, DIMS(t->batch, places, heads * d), numbers);
    else
        run_node_input(r, t->dtype, DIMS(t->batch, heads, places, d), numbers);
}

static void outputs(run_node *r, const attention *t, const tensors *m)
{
    const int64_t total = t->past + t->kv_len;
    if (t->by_position)
        run_node_expect(r, t->dtype, DIMS(t->batch, t->q_len, t->heads * t->dv), m->y);
    else
        run_node_expect(r, t->dtype, DIMS(t->batch, t->heads, t->q_len, t->dv), m->y);
    if (t->present) {
        run_node_expect(r, t->dtype, DIMS(t->batch, t->kv_heads, total, t->d), m->present_k);
        run_node_expect(r, t->dtype, DIMS(t->batch, t->kv_heads, total, t->dv), m->present_v);
    } else if (t->mode >= 0) {
        run_node_expect_absent(r);
        run_node_expect_absent(r);
    }
    if (t->mode >= 0)
        run_node_expect(r, t->dtype, DIMS(t->batch, t->heads, t->q_len, total), m->scores);
}

static void check(attention t)
{
    const int64_t keys = t.past + t.kv_len - t.mask_short;
    const tensors m = make(&t);
    run_node r;
    run_node_start(&r, NULL, "Attention", t.left || t.right ? 25 : t.lengths ? 24 : 23);
    if (t.left) run_node_int(&r, "left_window_size", t.left - 1);
    if (t.right) run_node_int(&r, "right_window_size", t.right - 1);
    run_node_int(&r, "is_causal", t.causal);
    if (t.by_position) run_node_int(&r, "q_num_heads", t.heads);
    if (t.by_position) run_node_int(&r, "kv_num_heads", t.kv_heads);
    if (!isnan(t.scale)) run_node_float(&r, "scale", t.scale);
    if (t.softcap > 0) run_node_float(&r, "softcap", t.softcap);
    if (t.mode >= 0) run_node_int(&r, "qk_matmul_output_mode", t.mode);
    input(&r, &t, t.heads, t.q_len, t.d, m.q);
    input(&r, &t, t.kv_heads, t.kv_len, t.d, m.k);
    input(&r, &t, t.kv_heads, t.kv_len, t.dv, m.v);
    if (t.mask && t.mask_rank == 4)
        run_node_input(&r, t.mask == 1 ? CLG_BOOL : t.dtype, DIMS(t.batch, 1, t.q_len, keys),
                       m.mask);
    else if (t.mask)
        run_node_input(&r, t.mask == 1 ? CLG_BOOL : t.dtype, DIMS(t.q_len, keys), m.mask);
    else if (t.past || t.lengths)
        run_node_absent(&r);
    if (t.past) {
        run_node_input(&r, t.dtype, DIMS(t.batch, t.kv_heads, t.past, t.d), m.past_k);
        run_node_input(&r, t.dtype, DIMS(t.batch, t.kv_heads, t.past, t.dv), m.past_v);
    } else if (t.lengths) {
        run_node_absent(&r);
        run_node_absent(&r);
    }
    if (t.lengths) run_node_input(&r, CLG_INT64, DIMS(t.batch), t.lengths);
    outputs(&r, &t, &m);
    run_node_check(&r, t.dtype == CLG_FLOAT16 ? 4e-3 : t.dtype == CLG_BFLOAT16 ? 3e-2 : 2e-5);
}

static const attention base = {.dtype = CLG_FLOAT32,
                               .batch = 2,
                               .heads = 4,
                               .kv_heads = 4,
                               .q_len = 9,
                               .kv_len = 21,
                               .d = 8,
                               .dv = 8,
                               .scale = NAN,
                               .mode = -1,
                               .mask_rank = 2};

TEST(attention__sizes)
{
    static const int64_t sizes[][6] = {/* heads, kv heads, queries, keys, d, dv */
                                       {1, 1, 1, 1, 1, 1},     {2, 2, 8, 16, 16, 16},
                                       {4, 2, 17, 33, 5, 7},   {6, 1, 3, 130, 64, 20},
                                       {2, 2, 1, 257, 32, 32}, {1, 1, 20, 5, 80, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int place = 0; place < 2; place++) {
            attention t = base;
            t.heads = sizes[i][0];
            t.kv_heads = sizes[i][1];
            t.q_len = sizes[i][2];
            t.kv_len = sizes[i][3];
            t.d = sizes[i][4];
            t.dv = sizes[i][5];
            t.by_position = place;
            check(t);
        }
    attention none = base;
    none.kv_len = 0;
    check(none);
}

TEST(attention__masks)
{
    for (int kind = 1; kind < 3; kind++)
        for (int rank = 2; rank < 5; rank += 2) {
            attention t = base;
            t.mask = kind;
            t.mask_rank = rank;
            check(t);
            t.causal = true;
            t.mask_short = 3;
            check(t);
        }
}

TEST(attention__causal_and_past)
{
    attention t = base;
    t.causal = true;
    check(t);
    t.past = 13;
    t.kv_len = t.q_len;
    t.by_position = true;
    t.kv_heads = 2;
    t.present = true;
    check(t);
    t.causal = false;
    t.present = false;
    t.mask = 2;
    check(t);
    t.q_len = t.kv_len = 1;
    t.mask = 0;
    t.present = true;
    check(t);
    t.past = 0;
    check(t);
}

TEST(attention__lengths)
{
    attention t = base;
    t.lengths = (double[]){21, 10};
    check(t);
    t.causal = true;
    check(t);
    t.mask = 1;
    t.causal = false;
    t.lengths = (double[]){1, 0}; /* a row without keys is 0 */
    check(t);
}

TEST(attention__scores)
{
    for (int mode = 0; mode < 4; mode++) {
        attention t = base;
        t.mode = mode;
        t.softcap = 0.5;
        t.scale = 0.7;
        t.mask = 2;
        check(t);
    }
}

TEST(attention__half)
{
    attention t = base;
    t.dtype = CLG_FLOAT16;
    t.d = t.dv = 32;
    t.past = 5;
    t.present = true;
    t.causal = true;
    check(t);
    t.mask = 2;
    t.softcap = 2;
    check(t);
}

TEST(attention__bfloat16)
{
    attention t = base;
    t.dtype = CLG_BFLOAT16;
    t.past = 5;
    t.present = true;
    t.causal = true;
    check(t);
    t.d = t.dv = 32;
    t.q_len = 1;
    t.mask = 2;
    check(t);
}

TEST(attention__windows)
{
    static const int64_t windows[][2] = {{1, 0}, {4, 1}, {3, 2}, {0, 3}, {0, 1}, {100, 100}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        attention t = base;
        t.left = windows[i][0];
        t.right = windows[i][1];
        check(t);
        t.past = 13;
        t.causal = i % 2;
        t.mask = 1;
        t.present = true;
        check(t);
        t.past = 0;
        t.present = false;
        t.lengths = (double[]){21, 7}; /* the first of 9 queries have no key */
        t.mode = 3;
        check(t);
    }
    attention t = base; /* many more keys than a tile or work-group, most of them skipped */
    t.left = 6;
    t.right = 1;
    t.past = 300;
    t.kv_len = t.q_len = 19;
    check(t);
    t.q_len = t.kv_len = 1;
    check(t);
}

TEST(attention__refuses)
{
    const double x[96] = {0};
    run_node r;
    run_node_start(&r, NULL, "Attention", 23);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 3, 2, 4), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 4), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 4), x);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 3, 2, 4), x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "do not go together");
    run_node_start(&r, NULL, "Attention", 23);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 4), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 4), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 2, 4), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(3, 2), x);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 2, 2, 4), x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "mask");
}

/* ---- RotaryEmbedding ------------------------------------------------------------------------- */

typedef struct rotary {
    clg_dtype dtype;
    bool by_position, pairs, microsoft;
    int64_t rotated;
    int ids; /* 0: none, caches by position; 1: [batch, positions]; 2: one offset */
} rotary;

enum { BATCH = 2, PLACES = 5, HEADS = 3, D = 12, ROWS = 20 };

static void rotate(const rotary *t, const double *x, const double *cosines, const double *sines,
                   const double *ids, double *y)
{
    const int64_t half = t->rotated / 2;
    for (int64_t i = 0; i < BATCH * PLACES * HEADS; i++) {
        const int64_t h = t->by_position ? i % HEADS : i / PLACES % HEADS,
                      p = t->by_position ? i / HEADS % PLACES : i % PLACES;
        const int64_t b = i / PLACES / HEADS, row = t->ids == 0   ? b * PLACES + p
                                                    : t->ids == 1 ? (int64_t)ids[b * PLACES + p]
                                                                  : (int64_t)ids[0] + p;
        (void)h;
        for (int64_t c = 0; c < D; c++) y[i * D + c] = x[i * D + c];
        for (int64_t c = 0; c < half; c++) {
            const int64_t re = t->pairs ? 2 * c : c, im = t->pairs ? 2 * c + 1 : c + half;
            const double complex z = (x[i * D + re] + x[i * D + im] * I) *
                                     (cosines[row * half + c] + sines[row * half + c] * I);
            y[i * D + re] = creal(z);
            y[i * D + im] = cimag(z);
        }
    }
}

static void check_rotary(rotary t)
{
    const int64_t half = t.rotated / 2, n_rows = t.ids == 0 ? BATCH * PLACES : ROWS;
    const double ids[BATCH * PLACES] = {3, 0, 19, 7, 7, 1, 2, 3, 4, 5};
    const double *x = run_node_random(BATCH * PLACES * HEADS * D),
                 *cosines = run_node_random(n_rows * half), *sines = run_node_random(n_rows * half);
    double *y = run_node_zeros(BATCH * PLACES * HEADS * D);
    rotate(&t, x, cosines, sines, ids, y);
    const int rank = t.by_position ? 3 : 4;
    const int64_t dims[4] = {BATCH, t.by_position ? PLACES : HEADS,
                             t.by_position ? HEADS * D : PLACES, D};
    run_node r;
    run_node_start(&r, t.microsoft ? "com.microsoft" : NULL, "RotaryEmbedding",
                   t.microsoft ? 1 : 23);
    if (t.pairs) run_node_int(&r, "interleaved", 1);
    if (t.by_position) run_node_int(&r, "num_heads", HEADS);
    if (t.rotated != D) run_node_int(&r, "rotary_embedding_dim", t.rotated);
    run_node_input(&r, t.dtype, rank, dims, x);
    if (t.microsoft && t.ids == 2) run_node_input(&r, CLG_INT64, DIMS(1), ids);
    if (t.microsoft && t.ids == 1) run_node_input(&r, CLG_INT64, DIMS(BATCH, PLACES), ids);
    for (int i = 0; i < 2; i++) {
        if (t.ids == 0)
            run_node_input(&r, t.dtype, DIMS(BATCH, PLACES, half), i ? sines : cosines);
        else
            run_node_input(&r, t.dtype, DIMS(ROWS, half), i ? sines : cosines);
    }
    if (!t.microsoft && t.ids == 1) run_node_input(&r, CLG_INT64, DIMS(BATCH, PLACES), ids);
    run_node_expect(&r, t.dtype, rank, dims, y);
    run_node_check(&r, t.dtype == CLG_FLOAT16 ? 2e-3 : 1e-6);
}

TEST(attention__rotary)
{
    for (int pairs = 0; pairs < 2; pairs++)
        for (int place = 0; place < 2; place++) {
            check_rotary((rotary){CLG_FLOAT32, place, pairs, false, D, 0});
            check_rotary((rotary){CLG_FLOAT32, place, pairs, false, 8, 1});
            check_rotary((rotary){CLG_FLOAT32, place, pairs, true, D, 1});
        }
    check_rotary((rotary){CLG_FLOAT32, true, false, true, 8, 2});
    check_rotary((rotary){CLG_FLOAT16, false, false, false, D, 1});
}

TEST(attention__rotary_out_of_range)
{
    const double x[4] = {0}, ids[] = {2};
    run_node r;
    run_node_start(&r, NULL, "RotaryEmbedding", 23);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 1, 2), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(2, 1), x);
    run_node_input(&r, CLG_FLOAT32, DIMS(2, 1), x);
    run_node_input(&r, CLG_INT64, DIMS(1, 1), ids);
    run_node_expect(&r, CLG_FLOAT32, DIMS(1, 1, 1, 2), x);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
}

TEST_GROUP(run_node_open, run_node_close)
