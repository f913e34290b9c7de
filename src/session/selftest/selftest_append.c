/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of appends to caches of keys and values (lower_context.appends), as nodes of
 * clgraph.CacheAppend.
 */
#include "ops/attention/attention.h"
#include "session/selftest/selftest.h"
#include "session/selftest/selftest_math.h"

#include <string.h>

/* Inputs of clgraph.CacheAppend. */
enum { PAST, FRESH, LENGTHS, N_INPUTS };
enum { BATCH = 2, PAST_LEN = 7, COUNT = 3 };

/* ---- reference ------------------------------------------------------------------------------- */

/* Returns where the new elements of a batch begin. */
static int64_t start_of(const lower_context *lc, const double *const *in, int64_t b)
{
    const int64_t count = lc->inputs[FRESH].dims.dims[2];
    if (lower_has_input(lc, LENGTHS))
        return (int64_t)in[LENGTHS][b] + node_int(lc->node, "length_add", 0) - count;
    if (!lower_has_input(lc, PAST) || node_int(lc->node, "at_front", 0)) return 0;
    return lc->inputs[PAST].dims.dims[2];
}

/* Copies `n` rows of d elements to y, as exact numbers. */
static void copy_rows(const double *x, int64_t n, int64_t d, double *y)
{
    if (n > 0) memcpy(y, x, (size_t)(n * d) * sizeof *y);
}

clg_status selftest_append(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    const shape *fresh = &lc->inputs[FRESH].dims, *present = &lc->outputs[0].dims;
    const int64_t heads = fresh->dims[1], count = fresh->dims[2], d = fresh->dims[3],
                  total = present->dims[2],
                  past = lower_has_input(lc, PAST) ? lc->inputs[PAST].dims.dims[2] : 0;
    for (int64_t i = 0; i < selftest_count(present); i++) out[0].scale[i] = 1;
    for (int64_t row = 0; row < fresh->dims[0] * heads; row++) {
        const int64_t start = start_of(lc, in, row / heads), end = start + count;
        double *y = out[0].y + row * total * d;
        if (past > 0) copy_rows(in[PAST] + row * past * d, start < past ? start : past, d, y);
        copy_rows(in[FRESH] + row * count * d, count, d, y + start * d);
        if (node_int(lc->node, "keeps", 0))
            copy_rows(in[PAST] + (row * past + end) * d, past - end, d, y + end * d);
    }
    return CLG_OK;
}

/* Lengths after which new elements begin at positions 2 and, in the last batch, 4. */
bool selftest_append_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                              double *out)
{
    (void)random;
    if (input != LENGTHS) return false;
    *out =
        (double)(2 + 2 * at + p->inputs[FRESH].dims.dims[2] - node_int(&p->node, "length_add", 0));
    return true;
}

/* ---- problems -------------------------------------------------------------------------------- */

typedef struct append_part {
    selftest_part part;
    const attention_append *append;
} append_part;

static bool has_step(const selftest_part *part, const step *s)
{
    (void)part;
    return s->kind == STEP_KERNEL && strcmp(s->kernel.entry, "kv_append") == 0;
}

/* Makes a problem with one append of the operator's. */
static clg_status make(const selftest_part *part, const lower_context *lc, size_t attempt,
                       selftest_problem *p, bool *out_made)
{
    const attention_append *a = ((const append_part *)part)->append;
    const int64_t heads = a->heads < 2 ? a->heads : 2;
    *p = (selftest_problem){0};
    *out_made = attempt == 0;
    if (!*out_made) return CLG_OK;
    selftest_part_begin(p, lc, "CacheAppend", N_INPUTS);
    if (a->has_past)
        selftest_part_input(p, PAST, a->dtype, 4, (int64_t[]){BATCH, heads, PAST_LEN, a->d});
    selftest_part_input(p, FRESH, a->dtype, 4, (int64_t[]){BATCH, heads, COUNT, a->d});
    if (a->has_lengths) selftest_part_input(p, LENGTHS, CLG_INT32, 1, (int64_t[]){BATCH});
    const selftest_int ints[] = {{"keeps", a->keeps},
                                 {"at_front", a->at_front},
                                 {"length_add", a->length_add},
                                 {"total", PAST_LEN + COUNT}};
    return selftest_part_attributes(p, ints, sizeof ints / sizeof *ints, NULL, 0);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Returns the append of a candidate's step of this index: the list has the last one first. */
static const attention_append *append_at(const lower_context *lc, size_t index)
{
    size_t n = 0;
    for (const attention_append *a = lc->appends; a; a = a->next) n++;
    const attention_append *found = lc->appends;
    for (size_t i = index + 1; found && i < n; i++) found = found->next;
    return index < n ? found : NULL;
}

clg_status selftest_appends(device_context *context, const lower_context *lc, const candidate *impl,
                            selftest_result *out_result)
{
    size_t index = 0;
    for (const step *s = impl->steps; s; s = s->next) {
        append_part part = {.part = {has_step, make, s}};
        selftest_result result;
        bool tested;
        if (!has_step(&part.part, s)) continue;
        part.append = append_at(lc, index++);
        if (!part.append) continue;
        CLG_TRY(selftest_part_run(context, lc, impl, &part.part, &result, &tested));
        if (tested && !result.passed) *out_result = result;
    }
    return CLG_OK;
}
