/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps, ai.onnx.ml: ZipMap (1), which puts names to the scores of classes. The planner executes it itself
 * (plan/zipmap.c): the row says that it exists, which attributes it has and what it gives.
 */
#include "ops/labels.h"
#include "ops/op.h"

/* One map a row. Its keys are told here; whether they are as many as the scores, when a run is planned. */
static clg_status zipmap_infer(op_context *c)
{
    const shape none = shape_unknown();
    fact_set(&c->outputs[0], CLG_FLOAT32, &none);
    c->outputs[0].kind = CLG_VALUE_SEQUENCE;
    c->outputs[0].key_dtype = labels_dtype(c->node);
    c->needs |= 1; /* the planner decides */
    return CLG_OK;
}

static const op_types zipmap_types[] = {{'F', DTYPE_BIT(CLG_FLOAT32)}, {0}};
static const op_attribute zipmap_attributes[] = {{"classlabels_strings", ATTRIBUTE_STRINGS, false},
                                                 {"classlabels_int64s", ATTRIBUTE_INTS, false},
                                                 {0}};

const op_row op_rows_map[] = {
    {.name = "ZipMap",
     .domain = "ai.onnx.ml",
     .since = 1,
     OP_INPUTS(1, 1, "F"),
     OP_OUTPUTS(1, 1, "?"),
     .types = zipmap_types,
     .attributes = zipmap_attributes,
     .flags = OP_HOST | OP_CONTROL | OP_UNKNOWN_RANK,
     .check = labels_check,
     .infer = zipmap_infer,
     .param = &(const op_control){CONTROL_ZIP_MAP}},
};
const size_t n_op_rows_map = sizeof op_rows_map / sizeof op_rows_map[0];
