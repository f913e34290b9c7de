/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements train_classes.h.
 */
#include "train_classes.h"

#include "image_folder.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_AT_ONCE 4096

/* ---- folders --------------------------------------------------------------------------------- */

const char *train_classes_folder(const text_list *items)
{
    for (size_t i = 0; i < items->count; i++) {
        const char *equals = strchr(items->items[i], '=');
        if (image_folder_has_classes(items->items[i])) return items->items[i];
        if (equals && image_folder_has_classes(equals + 1)) return equals + 1;
    }
    return NULL;
}

int train_classes_read(const char *folder, char **out_text)
{
    image_folder list;
    *out_text = must_copy("");
    int code = image_folder_list(folder, &list);
    for (size_t i = 0; i < list.n_classes && code == CODE_DONE; i++) {
        char *longer = must_printf("%s%s\n", *out_text, list.names[i]);
        if (strpbrk(list.names[i], "\r\n"))
            code = fail_usage("--classes: the name of the class '%s' has several lines",
                              printable(list.names[i]));
        free(*out_text);
        *out_text = longer;
    }
    image_folder_free(&list);
    return code;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A floating-point format: NaN is what exceeds the bits of infinity without the sign. */
typedef struct float_format {
    clg_dtype dtype;
    uint64_t infinity, magnitude;
} float_format;
static const float_format formats[] = {
    {CLG_FLOAT16, 0x7C00, 0x7FFF},
    {CLG_BFLOAT16, 0x7F80, 0x7FFF},
    {CLG_FLOAT32, 0x7F800000, 0x7FFFFFFF},
    {CLG_FLOAT64, UINT64_C(0x7FF0000000000000), UINT64_C(0x7FFFFFFFFFFFFFFF)},
};

static uint64_t element_bits(const char *at, size_t elem_bytes)
{
    uint16_t half = 0;
    uint32_t single = 0;
    uint64_t whole = 0;
    if (elem_bytes == 2) memcpy(&half, at, 2);
    if (elem_bytes == 4) memcpy(&single, at, 4);
    if (elem_bytes == 8) memcpy(&whole, at, 8);
    return elem_bytes == 2 ? half : elem_bytes == 4 ? single : whole;
}

/* Returns the index of the first NaN; n: there is none. */
static size_t find_nan(clg_dtype dtype, const char *data, size_t n)
{
    const size_t elem_bytes = clg_dtype_size(dtype);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        if (formats[f].dtype != dtype) continue;
        for (size_t i = 0; i < n; i++)
            if ((element_bits(data + i * elem_bytes, elem_bytes) & formats[f].magnitude) >
                formats[f].infinity)
                return i;
    }
    return n;
}

/* Returns the index of the first class that the model does not have; n: there is none. */
static size_t find_class(const train_checks *c, clg_dtype dtype, const char *data, size_t n,
                         int64_t *out_class)
{
    const size_t elem_bytes = clg_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = element_bits(data + i * elem_bytes, elem_bytes);
        const int64_t class = dtype == CLG_INT32 ? (int32_t)bits : (int64_t)bits;
        *out_class = class;
        const bool is_ignored = c->has_ignore_index && class == c->ignore_index;
        if (!is_ignored && (class < 0 || class >= c->n_classes)) return i;
    }
    return n;
}

static const clg_port *find_output(const clg_model *m, const char *name)
{
    const size_t n = clg_model_n_outputs(m);
    for (size_t i = 0; i < n; i++)
        if (name ? strcmp(clg_model_output(m, i)->name, name) == 0 : n == 1)
            return clg_model_output(m, i);
    return NULL;
}

train_checks train_checks_of(const clg_model *model, const clg_loss_options *loss,
                             const char *target)
{
    train_checks c = {.has_ignore_index = loss->has_ignore_index,
                      .ignore_index = loss->ignore_index};
    const clg_port *y = find_output(model, loss->output);
    if (loss->kind != CLG_LOSS_CROSS_ENTROPY && loss->kind != CLG_LOSS_NLL) return c;
    c.target = target;
    if (y && y->rank >= 2 && y->dims[1] > 0) c.n_classes = y->dims[1];
    return c;
}

static bool has_classes(const train_checks *c, const input_item *item)
{
    return c->target && c->n_classes > 0 && strcmp(item->port->name, c->target) == 0 &&
           (item->port->dtype == CLG_INT64 || item->port->dtype == CLG_INT32);
}

int train_check_row(const train_checks *c, const input_item *item, int64_t row, const void *data,
                    size_t size_bytes)
{
    const clg_dtype dtype = item->port->dtype;
    const size_t n = size_bytes / (clg_dtype_size(dtype) ? clg_dtype_size(dtype) : 1);
    const size_t nan_at = find_nan(dtype, data, n);
    int64_t class = 0;
    if (nan_at < n)
        return fail_file("'%s', row %" PRId64 ": element %zu is NaN", item->from, row + 1,
                         nan_at + 1);
    if (has_classes(c, item) && find_class(c, dtype, data, n, &class) < n)
        return fail_file("'%s', row %" PRId64 ": there is no class %" PRId64
                         ", the model has %" PRId64 ", from 0 on",
                         item->from, row + 1, class, c->n_classes);
    return CODE_DONE;
}

static int check_all(const train_checks *c, const input_item *item)
{
    const int64_t n_rows = dataset_rows(item->rows);
    const size_t elem_bytes = clg_dtype_size(item->port->dtype);
    char *data = must_alloc(ROWS_AT_ONCE, elem_bytes);
    int code = CODE_DONE;
    for (int64_t first = 0; first < n_rows && code == CODE_DONE; first += ROWS_AT_ONCE) {
        const int64_t left = n_rows - first;
        const size_t n = left < ROWS_AT_ONCE ? (size_t)left : ROWS_AT_ONCE;
        code = dataset_read(item->rows, first, n, data, n * elem_bytes);
        for (size_t i = 0; i < n && code == CODE_DONE; i++)
            code = train_check_row(c, item, first + (int64_t)i, data + i * elem_bytes, elem_bytes);
    }
    free(data);
    return code;
}

int train_check_targets(const train_checks *c, const input_set *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        if (item->rows && has_classes(c, item) && dataset_rank(item->rows) == 1)
            return check_all(c, item);
    }
    return CODE_DONE;
}
