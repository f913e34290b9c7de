/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements helpers for the functions of operators (op.h): access to a node's inputs and their
 * elements, errors with the node's name, facts, and sets of dtypes.
 */
#include "ops/core/op.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const value_fact absent_fact = {.kind = CLG_VALUE_TENSOR, .dims = {.rank = RANK_UNKNOWN}};

const value_fact *op_input(const op_context *c, size_t i)
{
    return i < c->n_inputs ? &c->inputs[i] : &absent_fact;
}

bool op_has_input(const op_context *c, size_t i)
{
    return i < c->n_inputs && c->node->inputs[i] != VALUE_NONE;
}

bool op_has_output(const op_context *c, size_t i)
{
    return i < c->n_outputs && c->node->outputs[i] != VALUE_NONE;
}

const tensor *op_need(op_context *c, size_t i)
{
    if (!op_has_input(c, i)) return NULL;
    if (!c->inputs[i].known) c->needs |= (uint32_t)1 << (i < 31 ? i : 31);
    return c->inputs[i].known;
}

bool op_need_ints(op_context *c, size_t i, int64_t out_values[OP_MAX_INTS], size_t *out_n,
                  clg_status *status)
{
    *out_n = 0;
    const value_fact *fact = op_input(c, i);
    char text[SHAPE_TEXT_BYTES];
    bool is_list = fact->dims.rank == RANK_UNKNOWN || fact->dims.rank == 0 || fact->dims.rank == 1;
    if (op_has_input(c, i) &&
        (!is_list || (fact->dtype != CLG_DTYPE_NONE && !dtype_is_integer(fact->dtype)))) {
        *status = op_error(c, CLG_ERROR_SHAPE, "input %zu must be a list of integers, not %s %s", i,
                           dtype_name(fact->dtype), shape_text(&fact->dims, text));
        return false;
    }
    const tensor *known = op_need(c, i);
    if (!known) return false;
    if (known->n_elements > OP_MAX_INTS) {
        *status = op_error(c, CLG_ERROR_SHAPE,
                           "input %zu has %lld numbers, more than the %d that there can be axes", i,
                           (long long)known->n_elements, OP_MAX_INTS);
        return false;
    }
    for (int64_t k = 0; k < known->n_elements; k++) out_values[k] = tensor_get_int(known, k);
    *out_n = (size_t)known->n_elements;
    return true;
}

clg_status op_need_dims(op_context *c, size_t i, bool *out_known, shape *out_dims)
{
    int64_t numbers[OP_MAX_INTS];
    size_t n;
    clg_status status = CLG_OK;
    const shape *list = &op_input(c, i)->dims;
    *out_dims = shape_unknown();
    *out_known = op_need_ints(c, i, numbers, &n, &status);
    if (status != CLG_OK) return status;
    int64_t rank = *out_known ? (int64_t)n : list->rank == 1 ? list->dims[0] : DIM_UNKNOWN;
    if (rank > CLG_MAX_RANK) {
        return op_error(c, CLG_ERROR_SHAPE, "requests %" PRId64 " axes, more than the %d supported",
                        rank, CLG_MAX_RANK);
    }
    if (rank == DIM_UNKNOWN) return CLG_OK;
    out_dims->rank = (int)rank;
    for (int k = 0; k < out_dims->rank; k++)
        out_dims->dims[k] = *out_known ? numbers[k] : DIM_UNKNOWN;
    return CLG_OK;
}

int op_word(const node *n, const char *name, const char *fallback, const char *const *words)
{
    const char *word = node_string(n, name, fallback);
    int i = 0;
    while (words[i] && strcmp(word, words[i]) != 0) i++;
    return i;
}

static clg_status node_error(const node *n, clg_status status, const char *format, va_list args)
{
    char shown[NODE_TEXT_BYTES];
    (void)error_set_v(status, format, args);
    return error_prefix(status, "%s", node_text(n, shown));
}

clg_status op_error(const op_context *c, clg_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)node_error(c->node, status, format, args);
    va_end(args);
    return status;
}

clg_status op_prefix(const op_context *c, clg_status status)
{
    char shown[NODE_TEXT_BYTES];
    return error_prefix(status, "%s", node_text(c->node, shown));
}

clg_status lower_error(const lower_context *c, clg_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)node_error(c->node, status, format, args);
    va_end(args);
    return status;
}

void fact_set(value_fact *f, clg_dtype dtype, const shape *dims)
{
    *f = (value_fact){.kind = CLG_VALUE_TENSOR, .dtype = dtype, .dims = *dims};
}

/* Casts const away, since only the reference count changes. */
tensor *fact_share(const tensor *known) { return tensor_retain((tensor *)(uintptr_t)known); }

static void release_shared(void *user) { tensor_free(user); }

clg_status fact_reshaped(const tensor *known, const shape *dims, tensor **out_tensor)
{
    tensor *shared = fact_share(known);
    clg_status status =
        tensor_wrap(known->dtype, dims, known->data, release_shared, shared, out_tensor);
    if (status != CLG_OK) tensor_free(shared);
    return status;
}

dtype_set op_row_types(const op_row *row, char letter)
{
    const bool moves = ((row->flags & OP_MOVES) && letter == 'T') || (row->flags & OP_CONTROL);
    const dtype_set strings = moves ? DTYPE_BIT(CLG_STRING) : 0;
    for (const op_types *t = row->types; t && t->letter; t++) {
        if (t->letter == letter) return row->flags & OP_CONTROL ? t->allowed : t->allowed | strings;
    }
    return DTYPES_ALL_FIXED | strings;
}

const char *dtype_set_text(dtype_set set, char buffer[DTYPE_SET_TEXT_BYTES])
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; i < 32 && used < DTYPE_SET_TEXT_BYTES; i++) {
        if (!(set & DTYPE_BIT(i))) continue;
        int n = snprintf(buffer + used, DTYPE_SET_TEXT_BYTES - used, "%s%s", used ? ", " : "",
                         dtype_name((clg_dtype)i));
        used += n > 0 ? (size_t)n : 0;
    }
    return buffer;
}

bool op_folds(const node *n)
{
    const op_row *row = n->op;
    if (row->flags & OP_HOST) return false;
    return !(row->flags & OP_RANDOM) || node_attribute(n, "seed");
}
