/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements predict_rows.h.
 */
#include "predict_rows.h"

#include "image_folder.h"
#include "output.h"
#include "stats.h"

#include <inttypes.h>
#include <string.h>

/* Returns whether rows may fail: a dataset in one file may have too many rows to look at each. */
static bool may_fail(const input_set *inputs)
{
    bool answer = false;
    for (size_t i = 0; i < inputs->count && !answer; i++)
        answer = inputs->items[i].rows && dataset_may_fail(inputs->items[i].rows);
    return answer;
}

const char *row_problem(const input_set *inputs, int64_t row)
{
    const char *problem = NULL;
    for (size_t i = 0; i < inputs->count && !problem; i++) {
        const dataset *rows = inputs->items[i].rows;
        if (rows) problem = dataset_problem(rows, row);
    }
    return problem;
}

int rows_check_shapes(const input_set *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        const clg_port *port = item->port;
        if (!item->rows || port->rank < 0) continue;
        size_t rank = dataset_rank(item->rows);
        const int64_t *dims = dataset_dims(item->rows);
        bool fits = (int)rank == port->rank;
        for (size_t d = 1; fits && d < rank; d++)
            fits = port->dims[d] < 0 || port->dims[d] == dims[d];
        if (fits) continue;
        return fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s' takes rows of %s, '%s' has rows of %s",
                    printable(port->name), dims_text((size_t)port->rank - 1, port->dims + 1),
                    item->from, dims_text(rank - 1, dims + 1));
    }
    return CODE_DONE;
}

void rows_blank(const input_set *inputs, int64_t first, const clg_stream_tensor *t)
{
    if (!may_fail(inputs)) return;
    /* a floating-point number whose bits are all set is NaN */
    const int byte = dtype_is_floating(t->dtype) ? 0xFF : 0;
    for (int64_t i = 0; i < t->dims[0]; i++) {
        if (row_problem(inputs, first + i))
            memset((char *)t->data + (size_t)i * t->row_bytes, byte, t->row_bytes);
    }
}

int64_t rows_count_failed(const input_set *inputs, int64_t first, int64_t n)
{
    int64_t n_failed = 0;
    for (int64_t row = 0; may_fail(inputs) && row < n; row++)
        n_failed += row_problem(inputs, first + row) != NULL;
    return n_failed;
}

json_t *rows_failed(const input_set *inputs, int64_t first, int64_t n, int64_t number)
{
    json_t *list = json_array();
    for (int64_t row = 0; may_fail(inputs) && row < n; row++) {
        const char *problem = row_problem(inputs, first + row);
        if (!problem) continue;
        const json_int_t shown = number + row;
        (void)json_array_append_new(
            list, json_pack("{s:I, s:o}", "row", shown, "message", output_json_text(problem)));
    }
    return list;
}

void rows_warn(const input_set *inputs, int64_t first, int64_t n, int64_t number)
{
    for (int64_t row = 0; may_fail(inputs) && row < n; row++) {
        const char *problem = row_problem(inputs, first + row);
        if (problem) output_warning("row %" PRId64 ": %s", number + row, problem);
    }
}

void rows_note_skipped(const input_set *inputs, bool with_names)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        const image_folder *folder = item->folder;
        if (!folder || folder->n_skipped == 0) continue;
        for (size_t k = 0; with_names && k < folder->n_skipped; k++)
            output_note("skipped '%s': %s", printable(folder->skipped[k].path),
                        folder->skipped[k].why);
        output_note("'%s': %zu images, others skipped: %zu%s", item->from, folder->n_files,
                    folder->n_skipped, with_names ? "" : " (-v names them)");
    }
}

json_t *rows_skipped(const input_set *inputs)
{
    json_t *list = json_array();
    for (size_t i = 0; i < inputs->count; i++) {
        const image_folder *folder = inputs->items[i].folder;
        for (size_t k = 0; folder && k < folder->n_skipped; k++)
            (void)json_array_append_new(list, json_pack("{s:o, s:s}", "file",
                                                        output_json_text(folder->skipped[k].path),
                                                        "message", folder->skipped[k].why));
    }
    return list;
}

int rows_end(int64_t n_failed, int64_t n, bool is_listed)
{
    if (n_failed == 0) return CODE_DONE;
    if (is_listed) return CODE_WORK;
    return fail(CODE_WORK, CLG_ERROR_IO,
                "%" PRId64 " of %" PRId64 " rows failed: their results are NaN (integers: 0)",
                n_failed, n);
}
