/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the cuts by dynamic programming: the best way to divide the first b blocks among the first
 * d devices follows from those of d - 1 devices.
 */
#include "session/layers/layer_costs.h"

#include <inttypes.h>
#include <math.h>

typedef struct cut_search {
    const layer_costs *c;
    const layer_device *devices;
    size_t n;
    bool counts_values; /* memory of values counts, not that of constants alone */
    /* At [d * (n_blocks + 1) + b], of the first b blocks on the first d devices: the time of the
     * slowest device, the time of all transfers, the number of devices without a block, and where
     * the last device begins. */
    double *slowest, *transfers;
    size_t *n_idle, *begin;
    double *work_before; /* by block: of all before it */
} cut_search;

static bool fits(const cut_search *s, size_t d, size_t first, size_t end)
{
    const uint64_t *table = s->counts_values ? s->c->part_bytes : s->c->weight_bytes;
    return table[layer_index(s->c, first, end)] <= s->devices[d].limit_bytes;
}

/* Returns whether the new way to come to a state is no better than the one that is there: fewer
 * devices without a block, then less time. */
static bool is_worse(const cut_search *s, size_t at, size_t n_idle, double seconds)
{
    if (!isfinite(s->slowest[at])) return false;
    if (n_idle != s->n_idle[at]) return n_idle > s->n_idle[at];
    return seconds >= s->slowest[at] + s->transfers[at];
}

/* Tries device d - 1 with the blocks `first` to b - 1. */
static void try_part(cut_search *s, size_t d, size_t first, size_t b)
{
    const size_t row = s->c->n_blocks + 1;
    const double speed = s->devices[d - 1].speed;
    const size_t at = d * row + b, from = (d - 1) * row + first;
    if (!isfinite(s->slowest[from])) return;
    double own = 0, transfer = 0;
    if (first < b) {
        if (speed <= 0 || !fits(s, d - 1, first, b)) return;
        transfer = first > 0 ? s->c->cut_work[first] / speed : 0;
        own = (s->work_before[b] - s->work_before[first]) / speed + transfer;
    }
    const double slowest = own > s->slowest[from] ? own : s->slowest[from];
    const double transfers = s->transfers[from] + transfer;
    const size_t n_idle = s->n_idle[from] + (first == b);
    if (is_worse(s, at, n_idle, slowest + transfers)) return;
    s->slowest[at] = slowest;
    s->transfers[at] = transfers;
    s->n_idle[at] = n_idle;
    s->begin[at] = first;
}

/* Returns whether there is a division. */
static bool search(cut_search *s, size_t *out_first)
{
    const size_t row = s->c->n_blocks + 1;
    for (size_t i = 0; i < (s->n + 1) * row; i++) s->slowest[i] = INFINITY;
    s->slowest[0] = s->transfers[0] = 0;
    s->n_idle[0] = 0;
    for (size_t d = 1; d <= s->n; d++)
        for (size_t b = 0; b < row; b++)
            for (size_t first = 0; first <= b; first++) try_part(s, d, first, b);
    if (!isfinite(s->slowest[s->n * row + row - 1])) return false;
    out_first[s->n] = row - 1;
    for (size_t d = s->n; d > 0; d--) out_first[d - 1] = s->begin[d * row + out_first[d]];
    return true;
}

/* Says why there is no division. */
static clg_status refuse(const layer_costs *c, const graph *g, const layer_device *devices,
                         size_t n)
{
    char text[NODE_TEXT_BYTES];
    uint64_t largest = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (devices[i].speed <= 0) continue;
        if (devices[i].limit_bytes > largest) largest = devices[i].limit_bytes;
        sum = sum + devices[i].limit_bytes < sum ? UINT64_MAX : sum + devices[i].limit_bytes;
    }
    for (size_t b = 0; b < c->n_blocks; b++) {
        const uint64_t bytes = c->weight_bytes[layer_index(c, b, b + 1)];
        if (bytes <= largest) continue;
        node_id i = c->starts[b];
        while (c->is_apart[i] && i + 1 < c->starts[b + 1]) i++;
        return error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                         "%s%s: the constants take %" PRIu64
                         " bytes, and no device has more than %" PRIu64,
                         c->starts[b + 1] - i > 1 ? "the nodes from " : "",
                         node_text(&g->nodes[i], text), bytes, largest);
    }
    const clg_status status = error_set(CLG_ERROR_OUT_OF_DEVICE_MEMORY,
                                        "the model's constants take %" PRIu64
                                        " bytes, and cannot be divided among devices that "
                                        "have %" PRIu64 " together",
                                        c->weight_bytes[layer_index(c, 0, c->n_blocks)], sum);
    error_hint("use more devices, or a larger max_memory_bytes if one is set");
    return status;
}

static clg_status cut(cut_search *s, const graph *g, size_t *out_first)
{
    const size_t row = s->c->n_blocks + 1, n = (s->n + 1) * row;
    s->slowest = memory_zalloc(n, sizeof *s->slowest);
    s->transfers = memory_zalloc(n, sizeof *s->transfers);
    s->n_idle = memory_zalloc(n, sizeof *s->n_idle);
    s->begin = memory_zalloc(n, sizeof *s->begin);
    s->work_before = memory_zalloc(row, sizeof *s->work_before);
    if (!s->slowest || !s->transfers || !s->n_idle || !s->begin || !s->work_before)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t b = 0; b + 1 < row; b++) s->work_before[b + 1] = s->work_before[b] + s->c->work[b];
    s->counts_values = true;
    if (search(s, out_first)) return CLG_OK;
    s->counts_values = false;
    if (search(s, out_first)) return CLG_OK;
    return refuse(s->c, g, s->devices, s->n);
}

clg_status layer_cut(const layer_costs *c, const graph *g, const layer_device *devices, size_t n,
                     size_t *out_first)
{
    cut_search s = {.c = c, .devices = devices, .n = n};
    const clg_status status = cut(&s, g, out_first);
    memory_free(s.slowest);
    memory_free(s.transfers);
    memory_free(s.n_idle);
    memory_free(s.begin);
    memory_free(s.work_before);
    return status;
}
