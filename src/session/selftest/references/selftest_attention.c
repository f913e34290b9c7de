/* SPDX-License-Identifier: Apache-2.0
 *
 * References of attention and of appends to caches of keys and values: the internal operators
 * clgraph.AttentionCore, with test inputs that mask single keys and all keys of some queries, and
 * clgraph.CacheAppend.
 */
#include "ops/attention/attention.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* ---- contents -------------------------------------------------------------------------------- */

/* Returns element `at` of input CORE_LENGTHS less length_add: a key length (of the last of several
 * batches all keys, so that the end of every buffer counts; of others a third of them, or all but
 * three) or, after these, a start position (1 or 2). */
static double length_at(const selftest_problem *p, int64_t at)
{
    const int64_t batch = p->inputs[CORE_Q].dims.dims[0], keys = p->inputs[CORE_K].dims.dims[2];
    int64_t length = batch > 1 && at % 2 == 0 ? keys / 3 : keys - 3;
    if (batch > 1 && at == batch - 1) length = keys;
    if (at >= batch) length = 1 + at % 2;
    return (double)(length - node_int(&p->node, "length_add", 0));
}

/* Returns whether a mask element masks out its key: all of the first row do if there are several
 * rows, and a random quarter of the others; never the last key, so that the end of every buffer
 * counts. */
static bool is_masked(const shape *mask, int64_t at, uint64_t random)
{
    const int64_t columns = mask->dims[mask->rank - 1], rows = selftest_count(mask) / columns;
    if (rows > 1 && at < columns) return true;
    return at % columns < columns - 1 && random % 4 == 0;
}

bool selftest_attention_contents(const selftest_problem *p, size_t input, int64_t at,
                                 uint64_t random, double *out)
{
    const lower_operand *o = &p->inputs[input];
    if (input == CORE_LENGTHS) {
        *out = length_at(p, at);
        return true;
    }
    if (input != CORE_MASK) return false;
    const bool masked = is_masked(&o->dims, at, random / 65);
    *out = masked ? -HUGE_VAL : 0;
    if (!dtype_is_float(o->dtype)) *out = !masked;
    return masked || !dtype_is_float(o->dtype);
}

/* ---- reference ------------------------------------------------------------------------------- */

/* A call of AttentionCore: inputs, shapes and attributes. */
typedef struct core {
    const lower_context *lc;
    const double *const *in;
    const shape *q, *k, *v;
    double scale, softcap, masked;
    int64_t causal, offset, window, keys, add;
} core;

static core read_core(const lower_context *lc, const double *const *in)
{
    const node *n = lc->node;
    return (core){.lc = lc,
                  .in = in,
                  .q = &lc->inputs[CORE_Q].dims,
                  .k = &lc->inputs[CORE_K].dims,
                  .v = &lc->inputs[CORE_V].dims,
                  .scale = (double)node_float(n, "scale", 1),
                  .softcap = (double)node_float(n, "softcap", 0),
                  .masked = (double)node_float(n, "masked", -INFINITY),
                  .causal = node_int(n, "causal", 0),
                  .offset = node_int(n, "offset", 0),
                  .window = node_int(n, "window", 0),
                  .keys = node_int(n, "keys", 0),
                  .add = node_int(n, "length_add", 0)};
}

/* Returns the element of a tensor that is broadcast to position `at` of the scores; NULL beyond the
 * end of a shorter last dimension. */
static const double *element_at(const core *c, size_t input, const int64_t at[4])
{
    const shape *s = &c->lc->inputs[input].dims;
    int64_t place = 0;
    for (int d = 0; d < s->rank; d++) {
        const int64_t i = at[4 - s->rank + d];
        if (s->dims[d] > 1 && i >= s->dims[d]) return NULL;
        place = place * s->dims[d] + (s->dims[d] > 1 ? i : 0);
    }
    return &c->in[input][place];
}

/* Returns what mask and bias add to a score. */
static double addends(const core *c, const int64_t at[4])
{
    double sum = 0;
    if (lower_has_input(c->lc, CORE_MASK)) {
        const double *m = element_at(c, CORE_MASK, at);
        const bool is_number = dtype_is_float(c->lc->inputs[CORE_MASK].dtype);
        sum += !m ? c->masked : is_number ? *m : *m > 0 ? 0 : c->masked;
    }
    if (lower_has_input(c->lc, CORE_BIAS)) sum += *element_at(c, CORE_BIAS, at);
    return sum;
}

/* Returns whether the causal rule and the window let query at[2] of batch at[0] attend to key
 * at[3]. *out_beyond: the key is past the batch's length, or before its start. */
static bool sees(const core *c, const int64_t at[4], bool *out_beyond)
{
    const int64_t batch = c->q->dims[0];
    int64_t length = c->k->dims[2], offset = c->offset;
    if (lower_has_input(c->lc, CORE_LENGTHS)) length = (int64_t)c->in[CORE_LENGTHS][at[0]] + c->add;
    if (c->causal == CAUSAL_LENGTH) offset += length - c->q->dims[2];
    *out_beyond = c->keys != KEYS_ALL && at[3] >= length;
    if (c->keys == KEYS_START_END)
        *out_beyond |= at[3] < (int64_t)c->in[CORE_LENGTHS][batch + at[0]];
    const int64_t distance = at[2] + offset - at[3];
    return c->causal == CAUSAL_NONE || (distance >= 0 && (c->window == 0 || distance < c->window));
}

/* Returns a score, with products computed as differences of squares. *size: the sum of the
 * magnitudes of its terms, plus 1. mode, as P_MODE of cl/attention/attention.cl: 0: scaled product;
 * 1: after softcap; 2 and more: after mask, bias and causal rule. */
static double score(const core *c, const int64_t at[4], int mode, double *size)
{
    const int64_t d = c->q->dims[3], group = c->q->dims[1] / c->k->dims[1];
    const double *q = c->in[CORE_Q] + ((at[0] * c->q->dims[1] + at[1]) * c->q->dims[2] + at[2]) * d,
                 *k = c->in[CORE_K] +
                      ((at[0] * c->k->dims[1] + at[1] / group) * c->k->dims[2] + at[3]) * d;
    double s = 0;
    *size = 1;
    for (int64_t i = 0; i < d; i++) {
        s += ((q[i] + k[i]) * (q[i] + k[i]) - (q[i] - k[i]) * (q[i] - k[i])) / 4 * c->scale;
        *size += fabs(q[i] * k[i] * c->scale);
    }
    if (mode > 0 && c->softcap > 0) s = c->softcap * (1 - 2 / (exp(2 * s / c->softcap) + 1));
    if (mode < 2) return s;
    bool beyond;
    const double plus = addends(c, at);
    if (!sees(c, at, &beyond)) return -HUGE_VAL;
    s += plus + (beyond ? c->masked : 0);
    *size += isinf(s) ? 0 : fabs(plus) + (beyond ? fabs(c->masked) : 0);
    return s;
}

/* Returns log(sum(exp(scores))), the sink's exponential included; HUGE_VAL if no key is visible, so
 * that all weights become 0. */
static double log_sum(const core *c, int64_t head, const double *scores, int64_t n)
{
    const int64_t sink = node_int(c->lc->node, "sink", 0);
    const double more = sink == SINK_BY_HEAD ? c->in[CORE_SINKS][head] : sink ? 0 : -HUGE_VAL;
    double top = more, sum = 0;
    for (int64_t j = 0; j < n; j++) top = fmax(top, scores[j]);
    if (top == -HUGE_VAL) return HUGE_VAL; /* no key: all weights are 0 */
    for (int64_t j = 0; j < n; j++) sum += exp(scores[j] - top);
    return top + log(sum + exp(more - top));
}

/* Computes row `row` of the output: scores, attention weights or weighted sums of the values,
 * according to attribute `scores`. memory: scratch for two doubles per key. */
static void fill_row(const core *c, int64_t row, double *memory, double *y, double *scale)
{
    const int64_t q_len = c->q->dims[2], heads = c->q->dims[1], n = c->k->dims[2],
                  dv = c->v->dims[3], requested = node_int(c->lc->node, "scores", 0);
    int64_t at[4] = {row / q_len / heads, row / q_len % heads, row % q_len, 0};
    double *scores = memory, *sizes = memory + n;
    for (at[3] = 0; at[3] < n; at[3]++)
        scores[at[3]] = score(c, at, requested ? (int)requested - 1 : 3, &sizes[at[3]]);
    const double all = requested == 0 || requested == 4 ? log_sum(c, at[1], scores, n) : 0;
    const int64_t head = at[1] / (heads / c->k->dims[1]);
    const double *v = c->in[CORE_V] + (at[0] * c->k->dims[1] + head) * n * dv;
    for (int64_t j = 0; j < n; j++) {
        const double weight = exp(scores[j] - all);
        if (requested) {
            y[row * n + j] = requested == 4 ? weight : scores[j];
            scale[row * n + j] = sizes[j];
        }
        for (int64_t i = 0; !requested && i < dv; i++) {
            y[row * dv + i] += weight * v[j * dv + i];
            scale[row * dv + i] += weight * fabs(v[j * dv + i]) * sizes[j];
        }
    }
    for (int64_t i = 0; !requested && i < dv; i++) scale[row * dv + i] += 1;
}

clg_status selftest_attention(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    double *y = out[0].y, *scale = out[0].scale;
    const core c = read_core(lc, in);
    const int64_t rows = c.q->dims[0] * c.q->dims[1] * c.q->dims[2];
    double *memory = arena_alloc(lc->memory, 2 * (size_t)c.k->dims[2] + 1, sizeof *memory);
    if (!memory) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < selftest_count(&lc->outputs[0].dims); i++) y[i] = scale[i] = 0;
    for (int64_t row = 0; row < rows; row++) fill_row(&c, row, memory, y, scale);
    return CLG_OK;
}

/* ---- CacheAppend ----------------------------------------------------------------------------- */

/* Returns where the new elements of a batch begin. */
static int64_t start_of(const lower_context *lc, const double *const *in, int64_t b)
{
    const int64_t count = lc->inputs[APPEND_FRESH].dims.dims[2];
    if (lower_has_input(lc, APPEND_LENGTHS))
        return (int64_t)in[APPEND_LENGTHS][b] + node_int(lc->node, "length_add", 0) - count;
    if (!lower_has_input(lc, APPEND_PAST) || node_int(lc->node, "at_front", 0)) return 0;
    return lc->inputs[APPEND_PAST].dims.dims[2];
}

/* Copies `n` rows of d elements to y, as exact numbers. */
static void copy_rows(const double *x, int64_t n, int64_t d, double *y)
{
    if (n > 0) memcpy(y, x, (size_t)(n * d) * sizeof *y);
}

clg_status selftest_append(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    const shape *fresh = &lc->inputs[APPEND_FRESH].dims, *present = &lc->outputs[0].dims;
    const int64_t heads = fresh->dims[1], count = fresh->dims[2], d = fresh->dims[3],
                  total = present->dims[2],
                  past =
                      lower_has_input(lc, APPEND_PAST) ? lc->inputs[APPEND_PAST].dims.dims[2] : 0;
    for (int64_t i = 0; i < selftest_count(present); i++) out[0].scale[i] = 1;
    for (int64_t row = 0; row < fresh->dims[0] * heads; row++) {
        const int64_t start = start_of(lc, in, row / heads), end = start + count;
        double *y = out[0].y + row * total * d;
        if (past > 0)
            copy_rows(in[APPEND_PAST] + row * past * d, start < past ? start : past, d, y);
        copy_rows(in[APPEND_FRESH] + row * count * d, count, d, y + start * d);
        if (node_int(lc->node, "keeps", 0))
            copy_rows(in[APPEND_PAST] + (row * past + end) * d, past - end, d, y + end * d);
    }
    return CLG_OK;
}

/* Lengths after which new elements begin at positions 2 and, in the last batch, 4. */
bool selftest_append_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                              double *out)
{
    (void)random;
    if (input != APPEND_LENGTHS) return false;
    *out = (double)(2 + 2 * at + p->inputs[APPEND_FRESH].dims.dims[2] -
                    node_int(&p->node, "length_add", 0));
    return true;
}
