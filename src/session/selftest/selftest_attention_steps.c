/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of an operator's attention steps (lower_context.attention) and appends to caches of
 * keys and values (lower_context.appends), as nodes of clgraph.AttentionCore and
 * clgraph.CacheAppend. Other steps of such operators, such as projections, are not part of these
 * problems. See decision 38.
 */
#include "ops/attention/attention.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* ---- attention ------------------------------------------------------------------------------- */

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
    selftest_part_input(p, CORE_Q, j->dtype, 4, (int64_t[]){s->batch, heads, s->q_len, j->d});
    selftest_part_input(p, CORE_K, j->dtype, 4,
                        (int64_t[]){s->batch, s->kv_heads, s->kv_len, j->d});
    selftest_part_input(p, CORE_V, j->dtype, 4,
                        (int64_t[]){s->batch, s->kv_heads, s->kv_len, j->dv});
    if (j->mask_kind != MASK_NONE)
        selftest_part_input(
            p, CORE_MASK, j->mask.dtype, 4,
            (int64_t[]){s->batch, 1, s->q_len, s->batch > 1 ? s->kv_len : s->kv_len - 2});
    if (j->has_bias)
        selftest_part_input(p, CORE_BIAS, j->dtype, 4, (int64_t[]){1, heads, s->q_len, s->kv_len});
    if (j->keys != KEYS_ALL || j->causal == CAUSAL_LENGTH)
        selftest_part_input(p, CORE_LENGTHS, j->lengths_dtype, 1,
                            (int64_t[]){j->keys == KEYS_START_END ? 2 * s->batch : s->batch});
    if (j->sink == SINK_BY_HEAD)
        selftest_part_input(p, CORE_SINKS, j->dtype, 1, (int64_t[]){heads});
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
    selftest_part_begin(p, lc, "AttentionCore", CORE_INPUTS);
    set_inputs(p, lc->attention, &s);
    return set_attributes(p, lc->attention, &s, scores);
}

/* The steps of an operator that are attention: the result's or, where scores is not 0, those that
 * compute the scores. */
typedef struct attention_part {
    selftest_part part;
    int scores; /* the attribute of AttentionCore */
} attention_part;

static bool has_attention_step(const selftest_part *part, const step *s)
{
    const bool scores = ((const attention_part *)part)->scores > 0;
    return s->kind == STEP_KERNEL && strncmp(s->kernel.source, "attention", 9) == 0 &&
           (strcmp(s->kernel.entry, "attention_scores") == 0) == scores;
}

static clg_status make_attention(const selftest_part *part, const lower_context *lc, size_t attempt,
                                 selftest_problem *p, bool *out_made)
{
    return make_problem(lc, attempt, ((const attention_part *)part)->scores, p, out_made);
}

/* ---- appends --------------------------------------------------------------------------------- */

enum { BATCH = 2, PAST_LEN = 7, COUNT = 3 };

typedef struct append_part {
    selftest_part part;
    const attention_append *append;
} append_part;

static bool has_append_step(const selftest_part *part, const step *s)
{
    (void)part;
    return s->kind == STEP_KERNEL && strcmp(s->kernel.entry, "kv_append") == 0;
}

/* Makes a problem with one append of the operator's. */
static clg_status make_append(const selftest_part *part, const lower_context *lc, size_t attempt,
                              selftest_problem *p, bool *out_made)
{
    const attention_append *a = ((const append_part *)part)->append;
    const int64_t heads = a->heads < 2 ? a->heads : 2;
    *p = (selftest_problem){0};
    *out_made = attempt == 0;
    if (!*out_made) return CLG_OK;
    selftest_part_begin(p, lc, "CacheAppend", APPEND_INPUTS);
    if (a->has_past)
        selftest_part_input(p, APPEND_PAST, a->dtype, 4, (int64_t[]){BATCH, heads, PAST_LEN, a->d});
    selftest_part_input(p, APPEND_FRESH, a->dtype, 4, (int64_t[]){BATCH, heads, COUNT, a->d});
    if (a->has_lengths) selftest_part_input(p, APPEND_LENGTHS, CLG_INT32, 1, (int64_t[]){BATCH});
    const selftest_int ints[] = {{"keeps", a->keeps},
                                 {"at_front", a->at_front},
                                 {"length_add", a->length_add},
                                 {"total", PAST_LEN + COUNT}};
    return selftest_part_attributes(p, ints, sizeof ints / sizeof *ints, NULL, 0);
}

/* Returns the append of a candidate's step of this index: the list has the last one first. */
static const attention_append *append_at(const lower_context *lc, size_t index)
{
    size_t n = 0;
    for (const attention_append *a = lc->appends; a; a = a->next) n++;
    const attention_append *found = lc->appends;
    for (size_t i = index + 1; found && i < n; i++) found = found->next;
    return index < n ? found : NULL;
}

/* Tests the appends to caches. Leaves *out_result unchanged where all pass or none has a problem.
 */
static clg_status test_appends(device_context *context, const lower_context *lc,
                               const candidate *impl, selftest_result *out_result)
{
    size_t index = 0;
    for (const step *s = impl->steps; s; s = s->next) {
        append_part part = {.part = {has_append_step, make_append, s}};
        selftest_result result;
        bool tested;
        if (!has_append_step(&part.part, s)) continue;
        part.append = append_at(lc, index++);
        if (!part.append) continue;
        CLG_TRY(selftest_part_run(context, lc, impl, &part.part, &result, &tested));
        if (tested && !result.passed) *out_result = result;
    }
    return CLG_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

clg_status selftest_attention_steps(device_context *context, const lower_context *lc,
                                    const candidate *impl, selftest_result *out_result,
                                    bool *out_tested)
{
    const int mode = (int)node_int(lc->node, "qk_matmul_output_mode", 0);
    const attention_part y = {{has_attention_step, make_attention, NULL}, 0},
                         scores = {{has_attention_step, make_attention, NULL}, 1 + mode};
    selftest_result more;
    bool tested;
    CLG_TRY(selftest_part_run(context, lc, impl, &y.part, out_result, out_tested));
    if (!*out_tested) return CLG_OK;
    CLG_TRY(selftest_part_run(context, lc, impl, &scores.part, &more, &tested));
    if (tested && !more.passed) *out_result = more;
    return test_appends(context, lc, impl, out_result);
}
