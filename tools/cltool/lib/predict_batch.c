/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the batch size with the highest throughput: tries growing sizes until rows per second no
 * longer increase, or memory or the time budget is used up.
 */
#include "predict_batch.h"

#include "engine.h"
#include "host.h"
#include "interrupt.h"
#include "output.h"

#include <string.h>

#define GROWTH 4
#define BUDGET_MS 3000.0                  /* for all sizes together */
#define SIZE_BUDGET_MS 60.0               /* per size, beyond its first runs */
#define MIN_GAIN 1.03                     /* smaller gains are not worth the memory */
#define MAX_ROWS_BYTES ((size_t)64 << 20) /* of inputs, per batch: several are in memory */
#define DEVICE_SHARE 4 /* divisor: a batch may use a quarter of the device's memory */

static size_t row_bytes(const input_item *item)
{
    size_t bytes = clg_dtype_size(item->port->dtype);
    for (size_t d = 1; d < item->rank; d++) bytes *= (size_t)item->dims[d];
    return bytes;
}

static int give_shapes(clg_session *session, const input_set *inputs, size_t batch)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        int64_t dims[CLG_MAX_RANK];
        if (!item->rows) continue;
        memcpy(dims, item->dims, sizeof dims);
        dims[0] = (int64_t)batch;
        /* an input that is mapped would take precedence over the shape */
        clg_status status = clg_session_set_input(session, item->port->name, NULL);
        if (status == CLG_OK)
            status = clg_session_set_input_shape(session, item->port->name, item->rank, dims);
        if (status != CLG_OK) return fail_status(status, STAGE_INPUT, NULL);
    }
    return CODE_DONE;
}

/* Determines whether a batch size fits: its inputs on the host in MAX_ROWS_BYTES, and all of its
 * device memory in 1 / DEVICE_SHARE of the device's. */
static int fits(clg_session *session, const clg_device_info *device, const input_set *inputs,
                size_t batch, bool *out_fits)
{
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    size_t bytes = 0;
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->items[i].rows) bytes += row_bytes(&inputs->items[i]);
    *out_fits = bytes == 0 || batch <= MAX_ROWS_BYTES / bytes;
    if (!*out_fits) return CODE_DONE;
    clg_status status = clg_session_memory(session, &memory);
    if (status != CLG_OK) return fail_status(status, STAGE_INPUT, NULL);
    *out_fits = memory.weight_bytes + memory.slab_bytes + 3 * memory.io_bytes <=
                    device->global_mem_bytes / DEVICE_SHARE &&
                memory.largest_buffer_bytes <= device->max_alloc_bytes;
    return CODE_DONE;
}

static int fill(clg_session *session, const input_set *inputs, int64_t first_row, size_t batch)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        int64_t dims[CLG_MAX_RANK];
        void *memory;
        if (!item->rows) continue;
        memcpy(dims, item->dims, sizeof dims);
        dims[0] = (int64_t)batch;
        clg_status status =
            clg_session_map_input(session, item->port->name, item->rank, dims, &memory);
        if (status != CLG_OK) return fail_status(status, STAGE_INPUT, NULL);
        int code = dataset_read(item->rows, first_row, batch, memory, batch * row_bytes(item));
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

/* Measures the shortest time of several runs, after one run that may compile kernels. */
static int time_runs(clg_session *session, double *out_ms)
{
    int code = engine_run(session);
    double start = now_ms(), now = start;
    *out_ms = 0;
    for (size_t i = 0; code == CODE_DONE && (i < 2 || now - start < SIZE_BUDGET_MS); i++) {
        code = engine_run(session);
        double before = now;
        now = now_ms();
        if (*out_ms == 0 || now - before < *out_ms) *out_ms = now - before;
    }
    return code;
}

int batch_measure(clg_session *session, const clg_device_info *device, const input_set *inputs,
                  int64_t first_row, int64_t n_rows, size_t *out_batch)
{
    double start = now_ms(), best = 0, ms;
    size_t n_worse = 0;
    int code = CODE_DONE;
    *out_batch = 1;
    for (size_t size = 1; size < GROWTH * (size_t)n_rows && n_worse < 2; size *= GROWTH) {
        const size_t batch = size < (size_t)n_rows ? size : (size_t)n_rows;
        bool has_room;
        output_progress("measuring batches of", batch, 0);
        code = give_shapes(session, inputs, batch);
        if (code == CODE_DONE) code = fits(session, device, inputs, batch, &has_room);
        if (code != CODE_DONE || !has_room) break;
        code = fill(session, inputs, first_row, batch);
        if (code == CODE_DONE) code = time_runs(session, &ms);
        if (code != CODE_DONE) break;
        double rate = (double)batch / ms;
        if (rate > best * MIN_GAIN) {
            best = rate;
            *out_batch = batch;
            n_worse = 0;
        } else {
            n_worse++;
        }
        if (now_ms() - start + GROWTH * 3 * ms > BUDGET_MS) break;
    }
    output_progress_clear();
    return code;
}
