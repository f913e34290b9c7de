/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the table look-ups of ai.onnx.ml: LabelEncoder (1, 2, 4), CategoryMapper (1) and
 * OneHotEncoder (1). They run on the host, except for a OneHotEncoder of numbers, which a pass
 * decomposes into other operators.
 */
#include "base/hash_map.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/ml/strings.h"

#include <math.h>
#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

/* A list given as an attribute: strings, int64s, floats, or a tensor of any of these. */
typedef struct list {
    const graph_attribute *attribute;
    clg_dtype dtype;
    int64_t n;
} list;

static list list_of(const node *n, const char *name)
{
    list l = {.attribute = node_attribute(n, name)};
    if (!l.attribute) return l;
    l.n = (int64_t)l.attribute->count;
    switch (l.attribute->type) {
    case ATTRIBUTE_STRINGS: l.dtype = CLG_STRING; break;
    case ATTRIBUTE_INTS: l.dtype = CLG_INT64; break;
    case ATTRIBUTE_FLOATS: l.dtype = CLG_FLOAT32; break;
    default: l.dtype = l.attribute->as.tensor->dtype; l.n = l.attribute->as.tensor->n_elements;
    }
    if (l.n == 0) l.attribute = NULL;
    return l;
}

/* Returns the first of these attributes that is present; the names end with NULL. */
static list first_of(const node *n, const char *const *names)
{
    list l = {.attribute = NULL};
    for (; *names && !l.attribute; names++) l = list_of(n, *names);
    return l;
}

/* Returns string i of a list. A list without an attribute stands for the integers from 0; its
 * strings are "". */
static const char *string_at(const list *l, int64_t i)
{
    if (!l->attribute) return "";
    return l->attribute->type == ATTRIBUTE_STRINGS ? l->attribute->as.strings[i]
                                                   : tensor_get_string(l->attribute->as.tensor, i);
}

static double number_at(const list *l, int64_t i)
{
    if (!l->attribute) return (double)i;
    return l->attribute->type == ATTRIBUTE_FLOATS ? (double)l->attribute->as.floats[i]
           : l->attribute->type == ATTRIBUTE_INTS ? (double)l->attribute->as.ints[i]
                                                  : tensor_get_float(l->attribute->as.tensor, i);
}

static int64_t int_at(const list *l, int64_t i)
{
    if (!l->attribute) return i;
    return l->attribute->type == ATTRIBUTE_INTS ? l->attribute->as.ints[i]
                                                : tensor_get_int(l->attribute->as.tensor, i);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A key of the hash map, as bytes: data points to a string, or to i or f. 0 and -0 are the same
 * key, and so are all NaNs. */
typedef struct key {
    const void *data;
    size_t n_bytes;
    int64_t i;
    double f;
} key;

static void key_of_float(key *k, double x)
{
    k->f = isnan(x) ? (double)NAN : x == 0 ? 0.0 : x;
    k->data = &k->f;
    k->n_bytes = sizeof k->f;
}

static void key_of_list(key *k, const list *l, int64_t i)
{
    if (l->dtype == CLG_STRING) {
        k->data = string_at(l, i);
        k->n_bytes = strlen(k->data);
    } else if (dtype_is_float(l->dtype)) {
        key_of_float(k, number_at(l, i));
    } else {
        k->i = int_at(l, i);
        k->data = &k->i;
        k->n_bytes = sizeof k->i;
    }
}

static void key_of_tensor(key *k, const tensor *t, int64_t i)
{
    if (t->dtype == CLG_STRING) {
        k->data = tensor_get_string(t, i);
        k->n_bytes = strlen(k->data);
    } else if (dtype_is_float(t->dtype)) {
        key_of_float(k, tensor_get_float(t, i));
    } else {
        k->i = tensor_get_int(t, i);
        k->data = &k->i;
        k->n_bytes = sizeof k->i;
    }
}

/* Fills a hash map from the keys of a list to their indices; of equal keys the first one counts. */
static clg_status map_keys(const list *l, hash_map *out)
{
    for (int64_t i = 0; i < l->n; i++) {
        key k;
        key_of_list(&k, l, i);
        if (hash_map_get(out, k.data, k.n_bytes) == HASH_MAP_NONE)
            CLG_TRY(hash_map_set(out, k.data, k.n_bytes, (size_t)i));
    }
    return CLG_OK;
}

/* ---- LabelEncoder, CategoryMapper ------------------------------------------------------------ */

static const char *const key_names[] = {"keys_strings", "keys_int64s", "keys_floats", "keys_tensor",
                                        NULL};
static const char *const value_names[] = {"values_strings", "values_int64s", "values_floats",
                                          "values_tensor", NULL};
static const char *const category_names[] = {"cats_int64s", "cats_strings", NULL};

/* Sets *keys and *values by the dtype of the input: LabelEncoder 1 and CategoryMapper map strings
 * to integers, or integers to strings. A list without an attribute stands for the integers from 0.
 */
static void find_table(const node *n, clg_dtype from, list *keys, list *values)
{
    const bool is_mapper = strcmp(n->op_type, "CategoryMapper") == 0;
    if (!is_mapper && n->opset >= 2) {
        *keys = first_of(n, key_names);
        *values = first_of(n, value_names);
        return;
    }
    list words = list_of(n, is_mapper ? "cats_strings" : "classes_strings"),
         numbers = is_mapper ? list_of(n, "cats_int64s") : (list){.dtype = CLG_INT64, .n = words.n};
    numbers.dtype = CLG_INT64;
    *keys = from == CLG_STRING ? words : numbers;
    *values = from == CLG_STRING ? numbers : words;
}

static clg_status label_check(const node *n)
{
    list keys, values;
    char shown[NODE_TEXT_BYTES];
    find_table(n, CLG_STRING, &keys, &values);
    if (keys.n == values.n && keys.n > 0) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: its keys and values are not as many",
                     node_text(n, shown));
}

static clg_status label_infer(op_context *c)
{
    list keys, values;
    const clg_dtype from = c->inputs[0].dtype;
    find_table(c->node, from, &keys, &values);
    if (from != CLG_DTYPE_NONE && keys.dtype != from)
        return op_error(c, CLG_ERROR_INVALID_MODEL, "its input is %s and its keys are %s",
                        dtype_name(from), dtype_name(keys.dtype));
    fact_set(&c->outputs[0], values.dtype, &c->inputs[0].dims);
    (void)op_need(c, 0);
    return CLG_OK;
}

static clg_status put_default(const node *n, tensor *y, int64_t i)
{
    const graph_attribute *given = node_attribute(n, "default_tensor");
    const tensor *t = given && given->as.tensor->n_elements == 1 ? given->as.tensor : NULL;
    if (y->dtype == CLG_STRING) {
        const char *s = t ? tensor_get_string(t, 0) : node_string(n, "default_string", "_Unused");
        return tensor_set_string(y, i, s, strlen(s));
    }
    if (dtype_is_float(y->dtype))
        tensor_set_float(
            y, i, t ? tensor_get_float(t, 0) : (double)node_float(n, "default_float", -0.0f));
    else
        tensor_set_int(y, i, t ? tensor_get_int(t, 0) : node_int(n, "default_int64", -1));
    return CLG_OK;
}

static clg_status put_value(const list *values, size_t at, tensor *y, int64_t i)
{
    if (y->dtype == CLG_STRING) {
        const char *s = string_at(values, (int64_t)at);
        return tensor_set_string(y, i, s, strlen(s));
    }
    if (dtype_is_float(y->dtype))
        tensor_set_float(y, i, number_at(values, (int64_t)at));
    else
        tensor_set_int(y, i, int_at(values, (int64_t)at));
    return CLG_OK;
}

static clg_status look_up(const node *n, const list *keys, const list *values, const tensor *x,
                          tensor *y)
{
    hash_map table = {0};
    clg_status status = keys->attribute ? map_keys(keys, &table) : CLG_OK;
    for (int64_t i = 0; i < x->n_elements && status == CLG_OK; i++) {
        key k = {0};
        size_t at = HASH_MAP_NONE;
        key_of_tensor(&k, x, i);
        if (keys->attribute)
            at = hash_map_get(&table, k.data, k.n_bytes);
        else if (k.i >= 0 && k.i < keys->n)
            at = (size_t)k.i;
        status = at == HASH_MAP_NONE ? put_default(n, y, i) : put_value(values, at, y, i);
    }
    hash_map_deinit(&table);
    return status;
}

static clg_status label_eval(op_context *c, tensor **out_tensors)
{
    list keys, values;
    const tensor *x = c->inputs[0].known;
    find_table(c->node, x->dtype, &keys, &values);
    CLG_TRY(tensor_create(values.dtype, &x->dims, &out_tensors[0]));
    return look_up(c->node, &keys, &values, x, out_tensors[0]);
}

/* ---- OneHotEncoder --------------------------------------------------------------------------- */

static clg_status onehot_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const list numbers = list_of(n, "cats_int64s"), words = list_of(n, "cats_strings");
    if ((numbers.attribute == NULL) != (words.attribute == NULL)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "%s: it must have one of cats_int64s and cats_strings", node_text(n, shown));
}

static clg_status onehot_infer(op_context *c)
{
    const list categories = first_of(c->node, category_names);
    const clg_dtype from = c->inputs[0].dtype;
    shape dims = c->inputs[0].dims;
    if (dims.rank >= CLG_MAX_RANK)
        return op_error(c, CLG_ERROR_SHAPE, "the output would have too many axes");
    if (from != CLG_DTYPE_NONE && (from == CLG_STRING) != (categories.dtype == CLG_STRING))
        return op_error(c, CLG_ERROR_INVALID_MODEL, "its input is %s and its categories are %s",
                        dtype_name(from), dtype_name(categories.dtype));
    dims.dims[dims.rank++] = categories.n;
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    return CLG_OK;
}

/* Evaluates a OneHotEncoder of strings. Returns no tensor for numbers: a pass decomposes those
 * nodes. */
static clg_status onehot_eval(op_context *c, tensor **out_tensors)
{
    const list categories = first_of(c->node, category_names);
    const tensor *x = c->inputs[0].known;
    hash_map table = {0};
    char shown[NAME_TEXT_BYTES];
    if (x->dtype != CLG_STRING) return CLG_OK;
    CLG_TRY(tensor_create(CLG_FLOAT32, &c->outputs[0].dims, &out_tensors[0]));
    clg_status status = map_keys(&categories, &table);
    for (int64_t i = 0; i < x->n_elements && status == CLG_OK; i++) {
        const char *s = tensor_get_string(x, i);
        const size_t at = hash_map_get(&table, s, strlen(s));
        if (at != HASH_MAP_NONE)
            ((float *)out_tensors[0]->data)[i * categories.n + (int64_t)at] = 1;
        else if (node_int(c->node, "zeros", 1) == 0)
            status = op_error(c, CLG_ERROR_DATA, "'%s' is not a category", name_text(s, shown));
    }
    hash_map_deinit(&table);
    return status;
}

static clg_status onehot_lower(lower_context *c)
{
    return lower_error(c, CLG_ERROR_UNSUPPORTED_OPERATOR,
                       "it is supported outside of branches and loops, with inputs of known rank");
}

/* ---- operator table -------------------------------------------------------------------------- */

#define WORD_TYPES                                                                                 \
    DTYPE_BIT(CLG_STRING) | DTYPE_BIT(CLG_INT64) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64)
static const op_types label_types[] = {
    {'T', WORD_TYPES | DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT16)}, {0}};
static const op_types map_types[] = {{'T', DTYPE_BIT(CLG_STRING) | DTYPE_BIT(CLG_INT64)}, {0}};
static const op_types onehot_types[] = {
    {'T', WORD_TYPES | DTYPE_BIT(CLG_INT32)}, {'F', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_attribute label_1[] = {{"classes_strings", ATTRIBUTE_STRINGS, true, OP_ANY},
                                       {"default_int64", ATTRIBUTE_INT, false, OP_ANY},
                                       {"default_string", ATTRIBUTE_STRING, false, OP_ANY},
                                       {0}};
static const op_attribute label_2[] = {{"keys_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
                                       {"keys_int64s", ATTRIBUTE_INTS, false, OP_ANY},
                                       {"keys_floats", ATTRIBUTE_FLOATS, false, OP_ANY},
                                       {"keys_tensor", ATTRIBUTE_TENSOR, false, OP_ANY},
                                       {"values_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
                                       {"values_int64s", ATTRIBUTE_INTS, false, OP_ANY},
                                       {"values_floats", ATTRIBUTE_FLOATS, false, OP_ANY},
                                       {"values_tensor", ATTRIBUTE_TENSOR, false, OP_ANY},
                                       {"default_string", ATTRIBUTE_STRING, false, OP_ANY},
                                       {"default_int64", ATTRIBUTE_INT, false, OP_ANY},
                                       {"default_float", ATTRIBUTE_FLOAT, false, OP_ANY},
                                       {"default_tensor", ATTRIBUTE_TENSOR, false, OP_ANY},
                                       {0}};
static const op_attribute map_attributes[] = {{"cats_int64s", ATTRIBUTE_INTS, true, OP_ANY},
                                              {"cats_strings", ATTRIBUTE_STRINGS, true, OP_ANY},
                                              {"default_int64", ATTRIBUTE_INT, false, OP_ANY},
                                              {"default_string", ATTRIBUTE_STRING, false, OP_ANY},
                                              {0}};
static const op_attribute onehot_attributes[] = {{"cats_int64s", ATTRIBUTE_INTS, false, OP_ANY},
                                                 {"cats_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
                                                 {"zeros", ATTRIBUTE_INT, false, OP_BOOLEAN},
                                                 {0}};

#define ROW(row_name, from, to, set, list, ...)                                                    \
    {                                                                                              \
        .name = row_name, .grad = GRAD_NONE(GRAD_OF_ML), .domain = "ai.onnx.ml", .since = from,    \
        .until = to, OP_INPUTS(1, 1, "T"), .types = set, .attributes = list, __VA_ARGS__           \
    }
#define LABEL                                                                                      \
    OP_OUTPUTS(1, 1, "?"), .flags = OP_HOST, .check = label_check, .infer = label_infer,           \
                           .batch = BATCH_POINTWISE, .eval = label_eval

const op_row op_rows_label[] = {
    ROW("LabelEncoder", 1, 1, map_types, label_1, LABEL),
    ROW("LabelEncoder", 2, 0, label_types, label_2, LABEL),
    ROW("CategoryMapper", 1, 0, map_types, map_attributes, LABEL),
    ROW("OneHotEncoder", 1, 0, onehot_types, onehot_attributes, OP_OUTPUTS(1, 1, "F"),
        .check = onehot_check, .infer = onehot_infer,
        .batch = OP_BATCH(.pass = batch_pass_onehot, .rows = 1, .fallback = -1),
        .eval = onehot_eval, .lower = onehot_lower),
};
const size_t n_op_rows_label = sizeof op_rows_label / sizeof op_rows_label[0];
