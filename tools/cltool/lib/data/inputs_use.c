/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets gathered inputs in a session, and makes copies of them with another batch size or varied
 * values.
 */
#include "inputs.h"
#include "output.h"
#include "stats.h"
#include "values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int inputs_give(const input_set *set, clg_session *session)
{
    for (size_t i = 0; i < set->count; i++) {
        const input_item *item = &set->items[i];
        if (!item->value && !item->has_dims) continue;
        clg_status status =
            item->value
                ? clg_session_set_input(session, item->port->name, item->value)
                : clg_session_set_input_shape(session, item->port->name, item->rank, item->dims);
        if (status != CLG_OK) return fail_status(status, STAGE_INPUT, NULL);
    }
    return CODE_DONE;
}

clg_shape_override *inputs_shapes(const input_set *set, size_t *out_n)
{
    clg_shape_override *shapes = must_alloc(set->count, sizeof *shapes), *to = shapes;
    for (size_t i = 0; i < set->count; i++) {
        if (!set->items[i].has_dims) continue;
        *to = (clg_shape_override){.input = set->items[i].port->name, .rank = set->items[i].rank};
        memcpy(to->dims, set->items[i].dims, sizeof to->dims);
        to++;
    }
    *out_n = (size_t)(to - shapes);
    return shapes;
}

int64_t model_batch(const clg_model *model)
{
    int64_t fixed = 0;
    bool is_free = false;
    size_t n = clg_model_n_inputs(model);
    for (size_t i = 0; i < n; i++) {
        const clg_port *port = clg_model_input(model, i);
        if (port->rank == 0 || port->kind != CLG_VALUE_TENSOR) continue;
        int64_t rows = port->rank > 0 ? port->dims[0] : -1;
        if (rows < 0) is_free = true;
        if (rows >= 0 && fixed > 0 && rows != fixed) return 0;
        if (rows >= 0) fixed = rows;
    }
    return is_free ? -1 : fixed;
}

/* Returns the index of the first input whose first axis is free: the symbol of that axis is the
 * batch. Returns set->count when there is none. */
static size_t batch_item(const input_set *set)
{
    size_t i = 0;
    while (i < set->count && (set->items[i].port->rank <= 0 || set->items[i].port->dims[0] >= 0))
        i++;
    return i;
}

static bool has_batch(const input_set *set, const input_item *item)
{
    const clg_port *port = item->port, *first = set->items[batch_item(set)].port;
    if (item->rank == 0) return false;
    return port->rank < 0 ||
           (port->dims[0] < 0 && strcmp(port->dim_names[0], first->dim_names[0]) == 0);
}

size_t inputs_batch(const input_set *set)
{
    size_t first = batch_item(set);
    if (first < set->count) return (size_t)set->items[first].dims[0];
    int64_t fixed = model_batch(set->model);
    return fixed > 0 ? (size_t)fixed : 1;
}

int64_t inputs_given_batch(const input_set *set)
{
    const size_t first = batch_item(set);
    for (size_t i = 0; first < set->count && i < set->n_symbols; i++) {
        const input_symbol *symbol = &set->symbols[i];
        if (symbol->is_given && strcmp(symbol->name, set->items[first].port->dim_names[0]) == 0)
            return symbol->size;
    }
    return -1;
}

/* Copies the items; values are shared. */
static input_set copy_set(const input_set *set)
{
    input_set copy = {.model = set->model,
                      .items = must_alloc(set->count, sizeof *copy.items),
                      .count = set->count};
    memcpy(copy.items, set->items, set->count * sizeof *copy.items);
    for (size_t i = 0; i < set->count; i++) {
        copy.items[i].images = NULL;
        copy.items[i].n_images = 0;
        copy.items[i].places = NULL;
        copy.items[i].folder = NULL;
        (void)clg_value_retain(copy.items[i].value);
    }
    return copy;
}

int inputs_with_batch(const input_set *set, size_t n, input_set *out_set)
{
    bool is_free = batch_item(set) < set->count;
    *out_set = (input_set){0};
    if (!is_free && inputs_batch(set) != n) {
        int64_t fixed = model_batch(set->model);
        if (fixed <= 0)
            return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                        "the model has no batch: its inputs share no first axis");
        return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "the model fixes the batch at %" PRId64 ", it cannot be %zu", fixed, n);
    }
    *out_set = copy_set(set);
    for (size_t i = 0; is_free && i < set->count; i++) {
        input_item *item = &out_set->items[i];
        if (!has_batch(set, item) || item->dims[0] == (int64_t)n) continue;
        clg_value *repeated = NULL;
        int code = item->value ? value_repeat_rows(item->value, n, &repeated) : CODE_DONE;
        if (code != CODE_DONE) {
            inputs_free(out_set);
            return code;
        }
        clg_value_free(item->value);
        item->value = repeated;
        item->dims[0] = (int64_t)n;
    }
    return CODE_DONE;
}

int inputs_varied(const input_set *set, size_t step, input_set *out_set)
{
    *out_set = copy_set(set);
    for (size_t i = 0; i < set->count; i++) {
        input_item *item = &out_set->items[i];
        clg_dtype dtype = item->port->dtype;
        /* Integers of rank 0 or 1 may be shapes, axes or lengths: they are not varied. */
        bool varies = dtype_is_floating(dtype) || (dtype_is_integral(dtype) && item->rank >= 2);
        if (!item->value || !varies || step == 0) continue;
        clg_value *rotated = NULL;
        int code = value_rotate(item->value, step, &rotated);
        if (code != CODE_DONE) {
            inputs_free(out_set);
            return code;
        }
        clg_value_free(item->value);
        item->value = rotated;
    }
    return CODE_DONE;
}

char *inputs_names(const clg_model *model)
{
    size_t n = clg_model_n_inputs(model);
    char *text = must_copy("");
    for (size_t i = 0; i < n && i < 20; i++) {
        char *longer = must_printf("%s%s'%s'", text, i == 0 ? "" : ", ",
                                   printable(clg_model_input(model, i)->name));
        free(text);
        text = longer;
    }
    if (n <= 20) return text;
    char *longer = must_printf("%s and %zu more", text, n - 20);
    free(text);
    return longer;
}
