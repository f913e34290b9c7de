/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements loop_counts.h.
 */
#include "session/run/loop_counts.h"

#include <inttypes.h>
#include <string.h>

#define DEFAULT_MAX_ITERATIONS UINT64_C(10000000) /* minutes, with the shortest bodies */
#define BRIEF_ITERATIONS 2 /* both sets of memories are read and written once */

void loop_counts_deinit(loop_counts *c)
{
    memory_free(c->counts);
    *c = (loop_counts){0};
}

static clg_status find_count(loop_counts *c, uint32_t number, int64_t **out_count)
{
    const size_t n = (size_t)number + 1;
    if (n > c->n) {
        CLG_TRY(MEMORY_RESERVE(c->counts, c->capacity, n));
        memset(c->counts + c->n, 0, (n - c->n) * sizeof *c->counts);
        c->n = n;
    }
    *out_count = &c->counts[number];
    return CLG_OK;
}

static clg_status count_iteration(loop_counts *c, const session_exec *e, const plan_iteration *next,
                                  int64_t *count)
{
    char text[NODE_TEXT_BYTES];
    const uint64_t most =
        e->options.max_iterations ? e->options.max_iterations : DEFAULT_MAX_ITERATIONS;
    ++*count;
    if (++c->total <= most) return CLG_OK;
    clg_status status = error_set(
        CLG_ERROR_DATA, "%s: the run has more than %" PRIu64 " iterations of loops",
        next->node < e->graph->n_nodes ? node_text(&e->graph->nodes[next->node], text) : "a loop",
        most);
    error_hint("clg_session_options.max_iterations sets another limit");
    return status;
}

clg_status loop_counts_next(loop_counts *c, const session_exec *e, const plan_segment *segment,
                            const tensor *condition, bool is_brief, bool *out_again,
                            int64_t *out_count)
{
    const plan_iteration *next = &segment->next;
    const int64_t n_first = next->base->next.n_done;
    int64_t *count;
    *out_again = false;
    *out_count = 0;
    CLG_TRY(find_count(c, next->number, &count));
    if (next->base == segment)
        *count = n_first;
    else
        CLG_TRY(count_iteration(c, e, next, count));
    *out_count = *count;
    *out_again =
        condition ? condition->n_elements == 1 && tensor_get_int(condition, 0) != 0 : !next->stops;
    if (next->trip >= 0 && *count >= next->trip) *out_again = false;
    if (is_brief && *count >= n_first + BRIEF_ITERATIONS) *out_again = false;
    return CLG_OK;
}
