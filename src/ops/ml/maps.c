/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes DictVectorizer and CastMap on the host. See maps.h.
 */
#include "ops/ml/maps.h"

#include "ops/ml/strings.h"

#include <stdlib.h>
#include <string.h>

static clg_status copy_element(tensor *to, int64_t at, const tensor *from, int64_t i)
{
    const size_t size = dtype_size(from->dtype);
    if (from->dtype == CLG_STRING) {
        const char *s = tensor_get_string(from, i);
        return tensor_set_string(to, at, s, strlen(s));
    }
    memcpy((char *)to->data + (size_t)at * size, (const char *)from->data + (size_t)i * size, size);
    return CLG_OK;
}

static clg_status make_row(clg_dtype dtype, int64_t n, tensor **out_tensor)
{
    const shape dims = {.rank = 2, .dims = {1, n}};
    return tensor_create(dtype, &dims, out_tensor);
}

/* ---- DictVectorizer: a value for each word of a vocabulary, 0 where there is none ------------ */

static clg_status index_keys(const tensor *keys, hash_map *out)
{
    for (int64_t i = 0; i < keys->n_elements; i++) {
        const char *word = keys->dtype == CLG_STRING ? tensor_get_string(keys, i) : NULL;
        const int64_t number = word ? 0 : tensor_get_int(keys, i);
        CLG_TRY(hash_map_set(out, word ? (const void *)word : &number,
                             word ? strlen(word) : sizeof number, (size_t)i));
    }
    return CLG_OK;
}

static clg_status look_up(const graph_attribute *vocabulary, const hash_map *index,
                          const tensor *values, tensor *to)
{
    const bool words = vocabulary->type == ATTRIBUTE_STRINGS;
    for (size_t i = 0; i < vocabulary->count; i++) {
        const char *word = words ? vocabulary->as.strings[i] : NULL;
        const size_t at = words ? hash_map_get(index, word, strlen(word))
                                : hash_map_get(index, &vocabulary->as.ints[i], sizeof(int64_t));
        if (at != HASH_MAP_NONE) CLG_TRY(copy_element(to, (int64_t)i, values, (int64_t)at));
    }
    return CLG_OK;
}

static clg_status vectorize(const node *n, const tensor *keys, const tensor *values,
                            tensor **out_tensor)
{
    const graph_attribute *vocabulary = node_attribute(n, "string_vocabulary");
    char shown[NODE_TEXT_BYTES];
    hash_map index = {0};
    if (!vocabulary || vocabulary->count == 0) vocabulary = node_attribute(n, "int64_vocabulary");
    if (keys && (keys->dtype == CLG_STRING) != (vocabulary->type == ATTRIBUTE_STRINGS))
        return error_set(CLG_ERROR_INVALID_MODEL, "%s: its input has keys of %s",
                         node_text(n, shown), dtype_name(keys->dtype));
    CLG_TRY(make_row(values ? values->dtype : CLG_FLOAT32, (int64_t)vocabulary->count, out_tensor));
    clg_status status = keys ? index_keys(keys, &index) : CLG_OK;
    if (status == CLG_OK && values) status = look_up(vocabulary, &index, values, *out_tensor);
    hash_map_deinit(&index);
    return status;
}

/* ---- CastMap: values in the order of their keys, or at their keys ---------------------------- */

typedef struct keyed {
    int64_t key, place;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static clg_status take_dense(const tensor *keys, const tensor *values, tensor **out_tensor)
{
    const int64_t n = keys && values ? keys->n_elements : 0;
    keyed *order = memory_zalloc((size_t)n + 1, sizeof *order);
    if (!order) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) order[i] = (keyed){tensor_get_int(keys, i), i};
    qsort(order, (size_t)n, sizeof *order, by_key);
    clg_status status = make_row(values ? values->dtype : CLG_FLOAT32, n, out_tensor);
    for (int64_t i = 0; i < n && status == CLG_OK; i++)
        status = copy_element(*out_tensor, i, values, order[i].place);
    memory_free(order);
    return status;
}

/* Creates a vector of max_map values from a map: the value of key k at index k, elsewhere 0 (the
 * string "0" for strings). Keys below 0, or of max_map and more, are ignored. */
static clg_status take_sparse(const node *n, const tensor *keys, const tensor *values,
                              tensor **out_tensor)
{
    const int64_t max = node_int(n, "max_map", 1);
    CLG_TRY(make_row(values ? values->dtype : CLG_FLOAT32, max, out_tensor));
    clg_status status = CLG_OK;
    for (int64_t i = 0; values && values->dtype == CLG_STRING && i < max && status == CLG_OK; i++)
        status = tensor_set_string(*out_tensor, i, "0", 1);
    for (int64_t i = 0; keys && values && i < keys->n_elements && status == CLG_OK; i++) {
        const int64_t key = tensor_get_int(keys, i);
        if (key >= 0 && key < max) status = copy_element(*out_tensor, key, values, i);
    }
    return status;
}

static clg_status cast(const node *n, const tensor *keys, const tensor *values, tensor **out_tensor)
{
    const char *word = node_string(n, "cast_to", "TO_FLOAT");
    const bool sparse = strcmp(node_string(n, "map_form", "DENSE"), "SPARSE") == 0;
    const clg_dtype to = strcmp(word, "TO_FLOAT") == 0   ? CLG_FLOAT32
                         : strcmp(word, "TO_INT64") == 0 ? CLG_INT64
                                                         : CLG_STRING;
    const op_context c = {.node = n, .row = n->op};
    char shown[NODE_TEXT_BYTES];
    tensor *taken = NULL;
    if (keys && keys->dtype != CLG_INT64)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s: its input has keys of %s",
                         node_text(n, shown), dtype_name(keys->dtype));
    clg_status status =
        sparse ? take_sparse(n, keys, values, &taken) : take_dense(keys, values, &taken);
    if (status == CLG_OK)
        status = taken->dtype == to || (taken->dtype != CLG_STRING && to != CLG_STRING)
                     ? tensor_cast(taken, to, out_tensor)
                     : strings_cast(&c, taken, to, out_tensor);
    tensor_free(taken);
    return status;
}

clg_status maps_to_tensor(const node *n, const tensor *keys, const tensor *values,
                          tensor **out_tensor)
{
    *out_tensor = NULL;
    clg_status status = strcmp(n->op_type, "CastMap") == 0 ? cast(n, keys, values, out_tensor)
                                                           : vectorize(n, keys, values, out_tensor);
    if (status == CLG_OK) return CLG_OK;
    tensor_free(*out_tensor);
    *out_tensor = NULL;
    return status;
}
