/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans aggregates (sequences, optionals and maps) that are inputs or outputs of the model: offsets
 * of their tensors in one buffer, comparison, deep copies. See aggregate.h and decision 18.
 */
#include "plan/aggregate.h"

#include <string.h>

#define AGGREGATE_ALIGN 128 /* bytes: OpenCL's largest type, long16 */

clg_status aggregate_offset(const value_fact *f, size_t *end_bytes, size_t *out_offset_bytes)
{
    int64_t n;
    size_t size_bytes,
        start = (*end_bytes + AGGREGATE_ALIGN - 1) / AGGREGATE_ALIGN * AGGREGATE_ALIGN;
    *out_offset_bytes = start;
    CLG_TRY(shape_n_elements(&f->dims, &n));
    if (f->dtype == CLG_STRING) return CLG_OK; /* strings stay on the host */
    if (dtype_size(f->dtype) == 0)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "tensors of %s inside of sequences and optionals are not supported",
                         dtype_name(f->dtype));
    if (n < 0 || !dtype_bytes(f->dtype, n, &size_bytes) ||
        size_bytes > SIZE_MAX / 2 - AGGREGATE_ALIGN - start)
        return error_set(CLG_ERROR_SHAPE, "a sequence is larger than memory can be");
    *end_bytes = start + size_bytes;
    return CLG_OK;
}

static clg_status add_bytes(const value_fact *f, size_t *end_bytes)
{
    size_t offset;
    if (f->known) return CLG_OK;
    if (f->kind == CLG_VALUE_TENSOR) return aggregate_offset(f, end_bytes, &offset);
    for (size_t i = 0; i < f->n_items; i++) CLG_TRY(add_bytes(&f->items[i], end_bytes));
    return CLG_OK;
}

clg_status aggregate_bytes(const value_fact *f, size_t *out_bytes)
{
    *out_bytes = 0;
    return add_bytes(f, out_bytes);
}

bool aggregate_equal(const value_fact *a, const value_fact *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || !shape_equal(&a->dims, &b->dims) ||
        a->n_items != b->n_items || (a->known != NULL) != (b->known != NULL))
        return false;
    for (size_t i = 0; i < a->n_items; i++)
        if (!aggregate_equal(&a->items[i], &b->items[i])) return false;
    return !a->known || tensor_equal(a->known, b->known);
}

/* Copies a tensor known on the host, since the caller may overwrite it later. *out_copy is NULL if
 * `known` is NULL. */
static clg_status copy_known(const tensor *known, const tensor **out_copy)
{
    tensor *t;
    *out_copy = NULL;
    if (!known) return CLG_OK;
    CLG_TRY(tensor_create(known->dtype, &known->dims, &t));
    clg_status status = CLG_OK;
    for (int64_t i = 0; known->dtype == CLG_STRING && i < t->n_elements && status == CLG_OK; i++) {
        const char *s = tensor_get_string(known, i);
        status = tensor_set_string(t, i, s, strlen(s));
    }
    if (known->dtype != CLG_STRING && t->size_bytes) memcpy(t->data, known->data, t->size_bytes);
    if (status == CLG_OK)
        *out_copy = t;
    else
        tensor_free(t);
    return status;
}

clg_status aggregate_copy(arena *memory, const value_fact *f, value_fact *out_copy)
{
    *out_copy = *f;
    out_copy->n_items = 0; /* the items that are valid if this fails */
    CLG_TRY(copy_known(f->known, &out_copy->known));
    if (f->n_items == 0) return CLG_OK;
    value_fact *items = arena_alloc(memory, f->n_items, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    out_copy->items = items;
    for (size_t i = 0; i < f->n_items; i++) {
        const clg_status status = aggregate_copy(memory, &f->items[i], &items[i]);
        out_copy->n_items++;
        CLG_TRY(status);
    }
    return CLG_OK;
}

void aggregate_release(const value_fact *f)
{
    for (size_t i = 0; i < f->n_items; i++) aggregate_release(&f->items[i]);
    tensor_free((tensor *)f->known);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static clg_status make_value(plan_state *s, const value_fact *f, uint32_t root, size_t *end_bytes,
                             plan_value *out)
{
    *out = (plan_value){.fact = *f, .root = ROOT_NONE, .dense = true, .n_items = f->n_items};
    if (f->kind == CLG_VALUE_TENSOR) {
        size_t offset;
        shape_strides(&f->dims, out->strides);
        if (f->known || f->dtype == CLG_STRING) return CLG_OK; /* nothing on the device */
        CLG_TRY(aggregate_offset(f, end_bytes, &offset));
        out->root = root;
        out->offset_elems = (int64_t)(offset / dtype_size(f->dtype));
        return CLG_OK;
    }
    plan_value *items = arena_alloc(&s->segment->memory, f->n_items + 1, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    out->items = items;
    for (size_t i = 0; i < f->n_items; i++)
        CLG_TRY(make_value(s, &f->items[i], root, end_bytes, &items[i]));
    return CLG_OK;
}

clg_status aggregate_input(plan_state *s, const value_fact *f, uint32_t root, plan_value *out_value)
{
    size_t end_bytes = 0;
    return make_value(s, f, root, &end_bytes, out_value);
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Calls settle for a tensor of an aggregate. Such a tensor has no value id, so it gets a temporary
 * one. */
static clg_status settle_tensor(plan_state *s, plan_value *item,
                                clg_status (*settle)(plan_state *s, value_id v))
{
    value_id made;
    if (item->root == ROOT_NONE && item->fact.known) return CLG_OK;
    CLG_TRY(state_add_values(s, 1, &made));
    s->values[made] = *item;
    CLG_TRY(settle(s, made));
    *item = s->values[made];
    s->n_values--;
    return CLG_OK;
}

static clg_status settle_items(plan_state *s, plan_value *v,
                               clg_status (*settle)(plan_state *s, value_id v))
{
    if (v->fact.kind == CLG_VALUE_TENSOR) return settle_tensor(s, v, settle);
    plan_value *items = arena_alloc(&s->segment->memory, v->n_items + 1, sizeof *items);
    if (!items) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < v->n_items; i++) {
        items[i] = v->items[i];
        CLG_TRY(settle_items(s, &items[i], settle));
    }
    v->items = items;
    return CLG_OK;
}

clg_status aggregate_settle(plan_state *s, value_id v,
                            clg_status (*settle)(plan_state *s, value_id v))
{
    plan_value whole = s->values[v];
    CLG_TRY(settle_items(s, &whole, settle));
    s->values[v] = whole;
    return CLG_OK;
}
