/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of attention kernels: the reference of clgraph.AttentionCore, test inputs that mask
 * single keys and all keys of some queries, and test problems for the attention kernels of any
 * operator (lower_context.attention). Appends to key/value caches are tested by
 * selftest_append.c. Other steps of such operators, such as projections, are not part of these
 * problems.
 */
#include "ops/attention/attention.h"
#include "session/selftest/selftest.h"
#include "session/selftest/selftest_math.h"

#include <math.h>
#include <string.h>

/* Inputs of clgraph.AttentionCore. */
enum { Q, K, V, MASK, BIAS, LENGTHS, SINKS, N_INPUTS };

/* ---- contents -------------------------------------------------------------------------------- */

/* Returns element `at` of input LENGTHS less length_add: a key length (of the last of several
 * batches all keys, so that the end of every buffer counts; of others a third of them, or all but
 * three) or, after these, a start position (1 or 2). */
static double length_at(const selftest_problem *p, int64_t at)
{
    const int64_t batch = p->inputs[Q].dims.dims[0], keys = p->inputs[K].dims.dims[2];
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
    if (input == LENGTHS) {
        *out = length_at(p, at);
        return true;
    }
    if (input != MASK) return false;
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
                  .q = &lc->inputs[Q].dims,
                  .k = &lc->inputs[K].dims,
                  .v = &lc->inputs[V].dims,
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
    if (lower_has_input(c->lc, MASK)) {
        const double *m = element_at(c, MASK, at);
        const bool is_number = dtype_is_float(c->lc->inputs[MASK].dtype);
        sum += !m ? c->masked : is_number ? *m : *m > 0 ? 0 : c->masked;
    }
    if (lower_has_input(c->lc, BIAS)) sum += *element_at(c, BIAS, at);
    return sum;
}

/* Returns whether the causal rule and the window let query at[2] of batch at[0] attend to key
 * at[3]. *out_beyond: the key is past the batch's length, or before its start. */
static bool sees(const core *c, const int64_t at[4], bool *out_beyond)
{
    const int64_t batch = c->q->dims[0];
    int64_t length = c->k->dims[2], offset = c->offset;
    if (lower_has_input(c->lc, LENGTHS)) length = (int64_t)c->in[LENGTHS][at[0]] + c->add;
    if (c->causal == CAUSAL_LENGTH) offset += length - c->q->dims[2];
    *out_beyond = c->keys != KEYS_ALL && at[3] >= length;
    if (c->keys == KEYS_START_END) *out_beyond |= at[3] < (int64_t)c->in[LENGTHS][batch + at[0]];
    const int64_t distance = at[2] + offset - at[3];
    return c->causal == CAUSAL_NONE || (distance >= 0 && (c->window == 0 || distance < c->window));
}

/* Returns a score, with products computed as differences of squares. *size: the sum of the
 * magnitudes of its terms, plus 1. mode, as P_MODE of cl/attention/attention.cl: 0: scaled product;
 * 1: after softcap; 2 and more: after mask, bias and causal rule. */
static double score(const core *c, const int64_t at[4], int mode, double *size)
{
    const int64_t d = c->q->dims[3], group = c->q->dims[1] / c->k->dims[1];
    const double *q = c->in[Q] + ((at[0] * c->q->dims[1] + at[1]) * c->q->dims[2] + at[2]) * d,
                 *k = c->in[K] +
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
    const double more = sink == SINK_BY_HEAD ? c->in[SINKS][head] : sink ? 0 : -HUGE_VAL;
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
    const double *v = c->in[V] + (at[0] * c->k->dims[1] + head) * n * dv;
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

/* ---- problems for an operator's steps -------------------------------------------------------- */

/* Sizes of an attention problem. Lowering chooses kernels by the number of queries and keys and, on
 * CPUs with many cores, of heads. There are several queries, since one would hide errors between
 * queries. */
typedef struct sizes {
    int64_t batch, kv_heads, group, q_len, kv_len;
} sizes;

/* Sets *out to the sizes of an attempt (0, 1, ...); returns false after the last. There are query
 * counts for each number of register tiles that a work-item may compute (choose_tiles in
 * ops/attention/attention.c), with one row in the last work-item. */
static bool list_sizes(const lower_context *lc, size_t attempt, sizes *out)
{
    static const int64_t few[] = {3, 13}, tiles[] = {6, 8, 12}, keys[] = {150, 37};
    enum { N_FEW = 2, N_QUERIES = N_FEW + 4 * 3, N_KEYS = 2, N_HEADS = 4 };
    const attention_job *j = lc->attention;
    const int64_t group = j->heads / j->kv_heads;
    const sizes heads[N_HEADS] = {
        {.batch = 2, .kv_heads = j->kv_heads < 2 ? j->kv_heads : 2, .group = group < 3 ? group : 3},
        {.batch = 2, .kv_heads = 1, .group = 1},
        {.batch = 1, .kv_heads = 1, .group = group < 2 ? group : 2},
        {.batch = 1, .kv_heads = 1, .group = 1}};
    const size_t q = attempt / N_KEYS % N_QUERIES, h = attempt / N_KEYS / N_QUERIES;
    if (h >= N_HEADS) return false;
    *out = heads[h];
    out->kv_len = keys[attempt % N_KEYS];
    if (q < N_FEW) {
        out->q_len = few[q];
        return true;
    }
    const int64_t rows = tiles[(q - N_FEW) / 4] * (int64_t)((q - N_FEW) % 4 + 1);
    const int64_t units = lc->caps->compute_units ? (int64_t)lc->caps->compute_units : 1;
    const int64_t pieces = out->batch * out->kv_heads * out->group;
    const int64_t full = (4 * units + pieces - 1) / pieces - 1;
    out->q_len = rows * (full > 1 ? full : 1) + 1;
    return true;
}

static void set_inputs(selftest_problem *p, const attention_job *j, const sizes *s)
{
    const int64_t heads = s->kv_heads * s->group;
    selftest_part_input(p, Q, j->dtype, 4, (int64_t[]){s->batch, heads, s->q_len, j->d});
    selftest_part_input(p, K, j->dtype, 4, (int64_t[]){s->batch, s->kv_heads, s->kv_len, j->d});
    selftest_part_input(p, V, j->dtype, 4, (int64_t[]){s->batch, s->kv_heads, s->kv_len, j->dv});
    if (j->mask_kind != MASK_NONE)
        selftest_part_input(
            p, MASK, j->mask.dtype, 4,
            (int64_t[]){s->batch, 1, s->q_len, s->batch > 1 ? s->kv_len : s->kv_len - 2});
    if (j->has_bias)
        selftest_part_input(p, BIAS, j->dtype, 4, (int64_t[]){1, heads, s->q_len, s->kv_len});
    if (j->keys != KEYS_ALL || j->causal == CAUSAL_LENGTH)
        selftest_part_input(p, LENGTHS, j->lengths_dtype, 1,
                            (int64_t[]){j->keys == KEYS_START_END ? 2 * s->batch : s->batch});
    if (j->sink == SINK_BY_HEAD) selftest_part_input(p, SINKS, j->dtype, 1, (int64_t[]){heads});
}

/* Sets the attributes. Those that select the program are the model's. scale, softcap, window and
 * offset are kernel arguments; they get fixed values, since the model's own could hide errors: the
 * last query attends to the last key. */
static clg_status set_attributes(selftest_problem *p, const attention_job *j, const sizes *s,
                                 int scores)
{
    const selftest_int ints[] = {{"causal", j->causal},
                                 {"offset", j->causal == CAUSAL_OFFSET ? s->kv_len - s->q_len : 0},
                                 {"window", j->window > 0 ? 5 : 0},
                                 {"keys", j->keys},
                                 {"length_add", j->length_add},
                                 {"sink", j->sink},
                                 {"scores", scores}};
    const selftest_float floats[] = {{"scale", 1 / sqrt((double)(j->d > 0 ? j->d : 1))},
                                     {"softcap", j->softcap > 0 ? 2 : 0},
                                     {"masked", j->masked}};
    return selftest_part_attributes(p, ints, sizeof ints / sizeof *ints, floats,
                                    sizeof floats / sizeof *floats);
}

/* Makes the AttentionCore problem of an attempt. scores: the attribute; 0: compute the output. */
static clg_status make_problem(const lower_context *lc, size_t attempt, int scores,
                               selftest_problem *p, bool *out_made)
{
    sizes s;
    *p = (selftest_problem){0};
    *out_made = list_sizes(lc, attempt, &s);
    if (!*out_made) return CLG_OK;
    selftest_part_begin(p, lc, "AttentionCore", N_INPUTS);
    set_inputs(p, lc->attention, &s);
    return set_attributes(p, lc->attention, &s, scores);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The steps of an operator that are attention: the result's or, where scores is not 0, those that
 * compute the scores. */
typedef struct attention_part {
    selftest_part part;
    int scores; /* the attribute of AttentionCore */
} attention_part;

static bool has_step(const selftest_part *part, const step *s)
{
    const bool scores = ((const attention_part *)part)->scores > 0;
    return s->kind == STEP_KERNEL && strncmp(s->kernel.source, "attention", 9) == 0 &&
           (strcmp(s->kernel.entry, "attention_scores") == 0) == scores;
}

static clg_status make(const selftest_part *part, const lower_context *lc, size_t attempt,
                       selftest_problem *p, bool *out_made)
{
    return make_problem(lc, attempt, ((const attention_part *)part)->scores, p, out_made);
}

clg_status selftest_attention_steps(device_context *context, const lower_context *lc,
                                    const candidate *impl, selftest_result *out_result,
                                    bool *out_tested)
{
    const int mode = (int)node_int(lc->node, "qk_matmul_output_mode", 0);
    const attention_part y = {{has_step, make, NULL}, 0},
                         scores = {{has_step, make, NULL}, 1 + mode};
    selftest_result more;
    bool tested;
    CLG_TRY(selftest_part_run(context, lc, impl, &y.part, out_result, out_tested));
    if (!*out_tested) return CLG_OK;
    CLG_TRY(selftest_part_run(context, lc, impl, &scores.part, &more, &tested));
    if (tested && !more.passed) *out_result = more;
    return selftest_appends(context, lc, impl, out_result);
}
