/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the operators on maps of ai.onnx.ml 1: ZipMap, which pairs class labels with scores, and
 * DictVectorizer and CastMap, which convert maps to tensors. This file checks their attributes and
 * infers their results; the planner executes them (plan/control/map_type.c).
 */
#include "ops/grad/grad_rule.h"
#include "ops/ml/labels.h"
#include "ops/ml/maps.h"

#include <string.h>

/* ---- ZipMap ---------------------------------------------------------------------------------- */

/* Infers ZipMap: a sequence of maps, one per row of the input. The number of labels is compared
 * with that of scores when a run is planned. */
static clg_status zipmap_infer(op_context *c)
{
    const shape none = shape_unknown();
    fact_set(&c->outputs[0], CLG_FLOAT32, &none);
    c->outputs[0].kind = CLG_VALUE_SEQUENCE;
    c->outputs[0].key_dtype = labels_dtype(c->node);
    c->needs |= 1; /* the planner executes the node */
    return CLG_OK;
}

/* ---- DictVectorizer, CastMap ----------------------------------------------------------------- */

static size_t count_of(const node *n, const char *name)
{
    const graph_attribute *a = node_attribute(n, name);
    return a ? a->count : 0;
}

static clg_status dict_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if ((count_of(n, "string_vocabulary") > 0) != (count_of(n, "int64_vocabulary") > 0))
        return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "%s: it must have one of string_vocabulary and int64_vocabulary",
                     node_text(n, shown));
}

/* Checks the key dtype that the model declares for the input map. The map that a run gets is
 * checked when the run is planned. */
static clg_status check_map(const op_context *c, clg_dtype keys)
{
    const value_fact *m = &c->inputs[0];
    if (m->kind != CLG_VALUE_MAP && m->dtype != CLG_DTYPE_NONE)
        return op_error(c, CLG_ERROR_INVALID_MODEL, "its input is not a map");
    if (m->key_dtype == CLG_DTYPE_NONE || m->key_dtype == keys) return CLG_OK;
    return op_error(c, CLG_ERROR_INVALID_MODEL, "its input has keys of %s, not of %s",
                    dtype_name(m->key_dtype), dtype_name(keys));
}

static clg_status dict_infer(op_context *c)
{
    const size_t words = count_of(c->node, "string_vocabulary"),
                 numbers = count_of(c->node, "int64_vocabulary");
    const shape dims = {.rank = 2, .dims = {1, (int64_t)(words ? words : numbers)}};
    CLG_TRY(check_map(c, words ? CLG_STRING : CLG_INT64));
    fact_set(&c->outputs[0], c->inputs[0].dtype, &dims);
    c->needs |= 1; /* the planner executes the node */
    return CLG_OK;
}

static clg_status cast_infer(op_context *c)
{
    const char *to = node_string(c->node, "cast_to", "TO_FLOAT");
    const bool sparse = strcmp(node_string(c->node, "map_form", "DENSE"), "SPARSE") == 0;
    const shape dims = {.rank = 2,
                        .dims = {1, sparse ? node_int(c->node, "max_map", 1) : DIM_UNKNOWN}};
    CLG_TRY(check_map(c, CLG_INT64));
    fact_set(&c->outputs[0],
             strcmp(to, "TO_FLOAT") == 0   ? CLG_FLOAT32
             : strcmp(to, "TO_INT64") == 0 ? CLG_INT64
                                           : CLG_STRING,
             &dims);
    c->needs |= 1;
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types zipmap_types[] = {{'F', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_attribute zipmap_attributes[] = {
    {"classlabels_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
    {"classlabels_int64s", ATTRIBUTE_INTS, false, OP_ANY},
    {0}};
static const op_attribute dict_attributes[] = {
    {"string_vocabulary", ATTRIBUTE_STRINGS, false, OP_ANY},
    {"int64_vocabulary", ATTRIBUTE_INTS, false, OP_ANY},
    {0}};
static const op_attribute cast_attributes[] = {
    {"cast_to", ATTRIBUTE_STRING, false, OP_ONE_OF("TO_FLOAT", "TO_INT64", "TO_STRING")},
    {"map_form", ATTRIBUTE_STRING, false, OP_ONE_OF("DENSE", "SPARSE")},
    {"max_map", ATTRIBUTE_INT, false, OP_COUNT},
    {0}};

#define ROW(row_name, letters, op_kind, ...)                                                       \
    {                                                                                              \
        .name = row_name, .grad = GRAD_NONE(GRAD_OF_ML), .domain = "ai.onnx.ml", .since = 1,       \
        OP_INPUTS(1, 1, letters), OP_OUTPUTS(1, 1, "?"),                                           \
        .flags = OP_HOST | OP_CONTROL | OP_UNKNOWN_RANK, .param = &(const op_control){op_kind},    \
        __VA_ARGS__                                                                                \
    }

const op_row op_rows_map[] = {
    ROW("ZipMap", "F", CONTROL_ZIP_MAP, .types = zipmap_types, .attributes = zipmap_attributes,
        .check = labels_check, .infer = zipmap_infer),
    ROW("DictVectorizer", "?", CONTROL_READ_MAP, .attributes = dict_attributes, .check = dict_check,
        .infer = dict_infer),
    ROW("CastMap", "?", CONTROL_READ_MAP, .attributes = cast_attributes, .infer = cast_infer),
};
const size_t n_op_rows_map = sizeof op_rows_map / sizeof op_rows_map[0];
