/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares LinearAttention with a formula without a recurrent state, in double. It computes each
 * token's update u from its value and the earlier updates, weighted by the decays in between;
 * outputs are sums of updates with the same weights.
 *
 * Tolerance: float32 2e-5, for sums of a few hundred products of magnitude 1; float16 4e-3 and
 * bfloat16 3e-2, since they round the results to 11 and 8 significant bits.
 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct linear {
    /* kept: dtype of the state; CLG_DTYPE_NONE: no past state. */
    clg_dtype dtype, kept;
    const char *rule;
    int64_t batch, tokens, heads, kv_heads, dk, dv;
    bool per_head_decay, one_beta;
    double scale;
} linear;

typedef struct tensors {
    double *q, *k, *v, *past, *decay, *beta, *y, *present;
    int64_t n_decay, n_beta; /* per token */
    bool gated, delta;
} tensors;

/* Returns the factor by which row d of the state decays from after token `from` (-1: the past
 * state) up to token `to`: exp of the sum of the decays in between, or 1 without decays. */
static double between(const linear *t, const tensors *m, int64_t b, int64_t g, int64_t d,
                      int64_t from, int64_t to)
{
    double sum = 0;
    for (int64_t i = from + 1; m->gated && i <= to; i++)
        sum += m->decay[(b * t->tokens + i) * m->n_decay + (t->per_head_decay ? g : g * t->dk + d)];
    return exp(sum);
}

static const double *key_of(const linear *t, const tensors *m, int64_t b, int64_t g, int64_t i)
{
    return m->k + ((b * t->tokens + i) * t->kv_heads + g) * t->dk;
}

/* Returns the dot product of `with` (dk elements) and column c of the state after token `to`, where
 * the state consists of the past state and the updates of n tokens. */
static double reads(const linear *t, const tensors *m, const double *u, int64_t b, int64_t g,
                    int64_t c, const double *with, int64_t n, int64_t to)
{
    double sum = 0;
    for (int64_t d = 0; d < t->dk; d++) {
        if (t->kept)
            sum += with[d] * between(t, m, b, g, d, -1, to) *
                   m->past[((b * t->kv_heads + g) * t->dk + d) * t->dv + c];
        for (int64_t i = 0; i < n; i++)
            sum += with[d] * between(t, m, b, g, d, i, to) * key_of(t, m, b, g, i)[d] * u[i];
    }
    return sum;
}

static void compute_column(const linear *t, const tensors *m, int64_t b, int64_t g, int64_t c)
{
    const int64_t group = t->heads / t->kv_heads;
    const double scale = t->scale != 0 ? t->scale : 1 / sqrt((double)t->dk);
    double *u = run_node_zeros(t->tokens), *unit = run_node_zeros(t->dk);
    for (int64_t i = 0; i < t->tokens; i++) {
        const int64_t token = b * t->tokens + i;
        u[i] = m->v[(token * t->kv_heads + g) * t->dv + c];
        if (m->delta)
            u[i] = m->beta[token * m->n_beta + (t->one_beta ? 0 : g)] *
                   (u[i] - reads(t, m, u, b, g, c, key_of(t, m, b, g, i), i, i));
        for (int64_t h = g * group; h < (g + 1) * group; h++)
            m->y[(token * t->heads + h) * t->dv + c] =
                scale * reads(t, m, u, b, g, c, m->q + (token * t->heads + h) * t->dk, i + 1, i);
    }
    for (int64_t d = 0; d < t->dk; d++) {
        unit[d] = 1;
        m->present[((b * t->kv_heads + g) * t->dk + d) * t->dv + c] =
            reads(t, m, u, b, g, c, unit, t->tokens, t->tokens - 1);
        unit[d] = 0;
    }
}

static tensors make(const linear *t)
{
    const int64_t rows = t->batch * t->tokens, state = t->batch * t->kv_heads * t->dk * t->dv;
    tensors m = {.gated = t->rule[0] == 'g',
                 .delta = t->rule[0] == 'd' || t->rule[5] == '_',
                 .n_decay = t->kv_heads * (t->per_head_decay ? 1 : t->dk),
                 .n_beta = t->one_beta ? 1 : t->kv_heads};
    m.q = run_node_random(rows * t->heads * t->dk);
    m.k = run_node_random(rows * t->kv_heads * t->dk);
    m.v = run_node_random(rows * t->kv_heads * t->dv);
    m.past = run_node_random(state);
    m.decay = run_node_random(rows * m.n_decay);
    m.beta = run_node_random(rows * m.n_beta);
    m.y = run_node_zeros(rows * t->heads * t->dv);
    m.present = run_node_zeros(state);
    for (int64_t i = 0; i < rows * t->kv_heads * t->dk; i++) m.k[i] /= 4;
    for (int64_t i = 0; i < rows * m.n_decay; i++) m.decay[i] = -fabs(m.decay[i]);
    for (int64_t i = 0; i < rows * m.n_beta; i++) m.beta[i] = fabs(m.beta[i]);
    for (int64_t b = 0; b < t->batch; b++)
        for (int64_t g = 0; g < t->kv_heads; g++)
            for (int64_t c = 0; c < t->dv; c++) compute_column(t, &m, b, g, c);
    return m;
}

static void check(linear t)
{
    const tensors m = make(&t);
    run_node r;
    run_node_start(&r, NULL, "LinearAttention", 27);
    run_node_int(&r, "q_num_heads", t.heads);
    run_node_int(&r, "kv_num_heads", t.kv_heads);
    run_node_string(&r, "update_rule", t.rule);
    if (t.scale != 0) run_node_float(&r, "scale", t.scale);
    run_node_input(&r, t.dtype, DIMS(t.batch, t.tokens, t.heads * t.dk), m.q);
    run_node_input(&r, t.dtype, DIMS(t.batch, t.tokens, t.kv_heads * t.dk), m.k);
    run_node_input(&r, t.dtype, DIMS(t.batch, t.tokens, t.kv_heads * t.dv), m.v);
    if (t.kept)
        run_node_input(&r, t.kept, DIMS(t.batch, t.kv_heads, t.dk, t.dv), m.past);
    else
        run_node_absent(&r);
    if (m.gated)
        run_node_input(&r, t.dtype, DIMS(t.batch, t.tokens, m.n_decay), m.decay);
    else
        run_node_absent(&r);
    if (m.delta) run_node_input(&r, t.dtype, DIMS(t.batch, t.tokens, m.n_beta), m.beta);
    run_node_expect(&r, t.dtype, DIMS(t.batch, t.tokens, t.heads * t.dv), m.y);
    run_node_expect(&r, t.kept ? t.kept : t.dtype, DIMS(t.batch, t.kv_heads, t.dk, t.dv),
                    m.present);
    run_node_check(&r, t.dtype == CLG_FLOAT32 ? 2e-5 : t.dtype == CLG_FLOAT16 ? 4e-3 : 3e-2);
}

static const linear base = {.dtype = CLG_FLOAT32,
                            .kept = CLG_FLOAT32,
                            .rule = "gated_delta",
                            .batch = 2,
                            .tokens = 5,
                            .heads = 4,
                            .kv_heads = 2,
                            .dk = 7,
                            .dv = 19};

TEST(linear_attention__rules)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    for (int i = 0; i < 4; i++) {
        linear t = base;
        t.rule = rules[i];
        check(t);
        t.kept = CLG_DTYPE_NONE;
        t.per_head_decay = t.one_beta = true;
        t.scale = 0.75;
        check(t);
    }
}

TEST(linear_attention__sizes)
{
    static const int64_t sizes[][6] = {/* batch, tokens, heads, kv heads, dk, dv */
                                       {1, 1, 1, 1, 1, 1},  {1, 3, 6, 1, 16, 16},
                                       {3, 1, 2, 2, 8, 33}, {1, 17, 1, 1, 5, 3},
                                       {0, 3, 2, 1, 4, 4},  {2, 0, 2, 1, 4, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        linear t = base;
        t.batch = sizes[i][0];
        t.tokens = sizes[i][1];
        t.heads = sizes[i][2];
        t.kv_heads = sizes[i][3];
        t.dk = sizes[i][4];
        t.dv = sizes[i][5];
        check(t);
    }
}

TEST(linear_attention__dtypes)
{
    linear t = base;
    t.dtype = CLG_FLOAT16;
    check(t);
    t.kept = CLG_FLOAT16;
    check(t);
    t.dtype = CLG_BFLOAT16;
    t.kept = CLG_DTYPE_NONE;
    check(t);
}

TEST(linear_attention__refuses)
{
    const double x[24] = {0};
    run_node r;
    for (int i = 0; i < 3; i++) {
        run_node_start(&r, NULL, "LinearAttention", 27);
        run_node_int(&r, "q_num_heads", i == 1 ? 3 : 2);
        run_node_int(&r, "kv_num_heads", 2);
        run_node_string(&r, "update_rule", i == 0 ? "square" : "gated");
        for (int k = 0; k < 3; k++) run_node_input(&r, CLG_FLOAT32, DIMS(1, 2, 6), x);
        run_node_expect(&r, CLG_FLOAT32, DIMS(1, 2, 6), x);
        if (i == 0) run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "'square'");
        if (i == 1) run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "not a multiple");
        if (i == 2) run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "needs decay");
    }
}

TEST_GROUP(run_node_open, run_node_close)
