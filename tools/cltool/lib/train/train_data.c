/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers batches of rows. See train_data.h.
 */
#include "train_data.h"

#include "interrupt.h"
#include "output.h"
#include "train_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The epoch whose order divides the rows. */
#define ORDER_OF_PARTS UINT64_MAX

int train_data_open(const input_set *inputs, const train_checks *checks, uint64_t seed,
                    size_t batch, double share, train_data *out_data)
{
    const input_item *first = NULL;
    *out_data = (train_data){.inputs = inputs, .seed = seed, .batch = batch, .checks = *checks};
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        if (!item->rows || dataset_rows(item->rows) < 0) continue;
        if (!first) first = item;
        if (dataset_rows(item->rows) != dataset_rows(first->rows))
            return fail_usage("'%s' has %lld rows, '%s' %lld", first->from,
                              (long long)dataset_rows(first->rows), item->from,
                              (long long)dataset_rows(item->rows));
    }
    if (!first) return fail_usage("no input has rows");
    out_data->n_rows = (uint64_t)dataset_rows(first->rows);
    out_data->n_validation = (uint64_t)floor(share * (double)out_data->n_rows);
    if (out_data->n_rows > out_data->n_validation) return train_check_targets(checks, inputs);
    return fail_usage("'%s' has %llu rows, of which none is left to train with", first->from,
                      (unsigned long long)out_data->n_rows);
}

uint64_t train_data_batches(const train_data *d)
{
    return (d->n_rows - d->n_validation + d->batch - 1) / d->batch;
}

/* Returns the row at a position of an epoch, or of the validation. */
static int64_t row_at(const train_data *d, bool validates, uint64_t epoch, uint64_t position)
{
    const uint64_t n_train = d->n_rows - d->n_validation;
    const uint64_t at =
        validates ? n_train + position : clg_train_row(d->seed, epoch, n_train, position);
    if (d->n_validation == 0) return (int64_t)at;
    return (int64_t)clg_train_row(d->seed, ORDER_OF_PARTS, d->n_rows, at);
}

/* Makes a value of n rows from a position on. */
static int gather(const train_data *d, const input_item *item, bool validates, uint64_t epoch,
                  uint64_t position, size_t n, clg_value **out_value)
{
    int64_t dims[CLG_MAX_RANK];
    memcpy(dims, dataset_dims(item->rows), sizeof dims);
    dims[0] = (int64_t)n;
    const clg_status status =
        clg_value_create(item->port->dtype, dataset_rank(item->rows), dims, out_value);
    if (status != CLG_OK) return fail_status(status, STAGE_INPUT, "'%s'", item->from);
    const size_t row_bytes = n > 0 ? clg_value_size_bytes(*out_value) / n : 0;
    char *to = clg_value_data(*out_value);
    char *scratch = must_alloc(row_bytes, 1);
    int64_t *rows = must_alloc(n, sizeof *rows);
    for (size_t i = 0; i < n; i++) rows[i] = row_at(d, validates, epoch, position + i);
    int code = dataset_read_rows(item->rows, rows, n, to, n * row_bytes);
    for (size_t i = 0; i < n && code == CODE_DONE; i++, to += row_bytes) {
        const int64_t row = rows[i];
        const char *problem = dataset_problem(item->rows, row);
        if (problem) code = fail_file("row %lld: %s", (long long)row + 1, problem);
        if (code == CODE_DONE) code = train_check_row(&d->checks, item, row, to, row_bytes);
        if (code == CODE_DONE && !validates)
            augment_row(&d->augment, item->rows, epoch, row, to, scratch, row_bytes);
    }
    free(rows);
    free(scratch);
    return code;
}

int train_data_gather(const train_data *d, bool validates, uint64_t index, train_batch *out_batch)
{
    const uint64_t n_batches = train_data_batches(d);
    const uint64_t n_all = validates ? d->n_validation : d->n_rows - d->n_validation;
    const uint64_t epoch = validates ? 0 : index / n_batches;
    const uint64_t first = (validates ? index : index % n_batches) * d->batch, left = n_all - first;
    int code = CODE_DONE;
    *out_batch = (train_batch){.n_rows = left < d->batch ? (size_t)left : d->batch,
                               .values = must_alloc(d->inputs->count, sizeof(clg_value *))};
    for (size_t i = 0; i < d->inputs->count && code == CODE_DONE; i++) {
        const input_item *item = &d->inputs->items[i];
        clg_value **value = &out_batch->values[i];
        if (item->rows)
            code = gather(d, item, validates, epoch, first, out_batch->n_rows, value);
        else if (item->value)
            *value = clg_value_retain(item->value);
    }
    if (code != CODE_DONE) train_batch_free(d, out_batch);
    return code;
}

int train_batch_set(const train_data *d, const train_batch *batch, clg_trainer *trainer)
{
    clg_status status = CLG_OK;
    for (size_t i = 0; i < d->inputs->count && status == CLG_OK; i++) {
        const char *name = d->inputs->items[i].port->name;
        if (batch->values[i]) status = clg_trainer_set_input(trainer, name, batch->values[i]);
    }
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

void train_batch_free(const train_data *d, train_batch *batch)
{
    for (size_t i = 0; batch->values && i < d->inputs->count; i++) clg_value_free(batch->values[i]);
    free(batch->values);
    *batch = (train_batch){0};
}

int train_data_validate(const train_data *d, clg_trainer *trainer, clg_measures *out_measures)
{
    clg_measures all = CLG_MEASURES_INIT;
    double sum = 0;
    train_reader *reader = NULL;
    const uint64_t n_batches = (d->n_validation + d->batch - 1) / d->batch;
    int code = train_reader_start(d, true, 0, n_batches, &reader);
    for (uint64_t b = 0; b < n_batches && code == CODE_DONE; b++) {
        size_t n;
        clg_measures measures = CLG_MEASURES_INIT;
        code = train_reader_set(reader, trainer, &n);
        if (code != CODE_DONE) break;
        interrupt_begin_computing();
        const clg_status status = clg_trainer_measure(trainer, &measures);
        interrupt_end_computing();
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
        sum += measures.loss * (double)n;
        all.n_right += measures.n_right;
        all.n_counted += measures.n_counted;
    }
    train_reader_stop(reader);
    all.loss = sum / (double)d->n_validation;
    *out_measures = all;
    return code;
}
