/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares If, Loop, Scan, SequenceMap, and the operators on sequences and optionals (ONNX versions
 * 1 to 25) with their attributes. The planner executes them (plan/control/control.c,
 * plan/control/scan.c, plan/control/sequence.c, plan/control/optional.c), so that they are not
 * lowered, and their outputs are not inferred.
 */
#include "ops/batch/batch_rule.h"
#include "ops/core/op.h"
#include "ops/grad/grad_rule.h"

static clg_status control_infer(op_context *c)
{
    c->needs |= 1; /* outputs stay unknown: the planner executes the node */
    return CLG_OK;
}

static clg_status if_check(const node *n)
{
    const graph_attribute *then_branch = node_attribute(n, "then_branch"),
                          *else_branch = node_attribute(n, "else_branch");
    char text[NODE_TEXT_BYTES];
    if (then_branch->as.graph->n_inputs == 0 && else_branch->as.graph->n_inputs == 0) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: a branch has inputs", node_text(n, text));
}

static const op_types bool_and_any[] = {{'B', DTYPE_BIT(CLG_BOOL)}, {0}};
static const op_types loop_types[] = {{'I', DTYPE_BIT(CLG_INT64)}, {'B', DTYPE_BIT(CLG_BOOL)}, {0}};

static const op_attribute if_attributes[] = {{"then_branch", ATTRIBUTE_GRAPH, true, OP_ANY},
                                             {"else_branch", ATTRIBUTE_GRAPH, true, OP_ANY},
                                             {0}};
static const op_attribute loop_attributes[] = {{"body", ATTRIBUTE_GRAPH, true, OP_ANY}, {0}};
static const op_attribute scan_8_attributes[] = {
    {"body", ATTRIBUTE_GRAPH, true, OP_ANY},
    {"num_scan_inputs", ATTRIBUTE_INT, true, OP_AT_LEAST(1)},
    {"directions", ATTRIBUTE_INTS, false, OP_BOOLEAN},
    {0}};
static const op_attribute scan_attributes[] = {
    {"body", ATTRIBUTE_GRAPH, true, OP_ANY},
    {"num_scan_inputs", ATTRIBUTE_INT, true, OP_AT_LEAST(1)},
    {"scan_input_axes", ATTRIBUTE_INTS, false, OP_ANY},
    {"scan_input_directions", ATTRIBUTE_INTS, false, OP_BOOLEAN},
    {"scan_output_axes", ATTRIBUTE_INTS, false, OP_ANY},
    {"scan_output_directions", ATTRIBUTE_INTS, false, OP_BOOLEAN},
    {0}};
static const op_attribute empty_attributes[] = {{"dtype", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute optional_attributes[] = {
    {"type", ATTRIBUTE_NONE, false, OP_ANY}, /* ignored: the element has its own type */
    {0}};
static const op_attribute split_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"keepdims", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_attribute join_attributes[] = {
    {"axis", ATTRIBUTE_INT, true, OP_ANY}, {"new_axis", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};

#define CONTROL_FLAGS (OP_HOST | OP_CONTROL | OP_UNKNOWN_RANK)
#define CONTROL(op_kind) (&(const op_control){op_kind})
#define SEQUENCES "gradients do not pass through control flow and sequences"
/* ops/grad/grad_control.c replaces the others */
#define WHERE_KNOWN "gradients pass through it where its condition or number of iterations is known"
#define ROW_OF(row_flags, reason, row_name, from, n_out, op_kind, ...)                             \
    {                                                                                              \
        .name = row_name, .grad = GRAD_NONE(reason), .since = from, OP_OUTPUTS(1, n_out, "?"),     \
        .flags = row_flags, .infer = control_infer, .param = CONTROL(op_kind), __VA_ARGS__         \
    }
#define ROW(...) ROW_OF(CONTROL_FLAGS, SEQUENCES, __VA_ARGS__)
#define ROW_KNOWN(...) ROW_OF(CONTROL_FLAGS, WHERE_KNOWN, __VA_ARGS__)
#define ROW_LACKING(...) ROW_OF(CONTROL_FLAGS | OP_MAY_LACK, __VA_ARGS__)

const op_row op_rows_control[] = {
    ROW_KNOWN("If", 1, OP_ANY_NUMBER, CONTROL_IF, .batch = BATCH_BY(batch_pass_if, 0),
              OP_INPUTS(1, 1, "B"), .types = bool_and_any, .attributes = if_attributes,
              .check = if_check),
    ROW_LACKING(
        WHERE_KNOWN, "Loop", 1, OP_ANY_NUMBER, CONTROL_LOOP,
        .batch = OP_BATCH(.pass = batch_pass_loop, .rows = BATCH_ALL & ~3u, .counts = BATCH_ALL),
        OP_INPUTS(2, OP_ANY_NUMBER, "IB?"), .types = loop_types, .attributes = loop_attributes),
    ROW_LACKING(SEQUENCES, "Scan", 8, OP_ANY_NUMBER, CONTROL_SCAN_8,
                OP_INPUTS(2, OP_ANY_NUMBER, "?"), .until = 8, .attributes = scan_8_attributes),
    ROW_KNOWN("Scan", 9, OP_ANY_NUMBER, CONTROL_SCAN, .batch = BATCH_BY(batch_pass_scan, BATCH_ALL),
              OP_INPUTS(1, OP_ANY_NUMBER, "?"), .attributes = scan_attributes),
    ROW("SequenceMap", 17, OP_ANY_NUMBER, CONTROL_SEQUENCE_MAP, OP_INPUTS(1, OP_ANY_NUMBER, "?"),
        .attributes = loop_attributes),
    ROW("SequenceEmpty", 11, 1, CONTROL_SEQUENCE_EMPTY, OP_INPUTS(0, 0, NULL),
        .attributes = empty_attributes),
    ROW("SequenceConstruct", 11, 1, CONTROL_SEQUENCE_CONSTRUCT, OP_INPUTS(1, OP_ANY_NUMBER, "?")),
    ROW("SequenceInsert", 11, 1, CONTROL_SEQUENCE_INSERT, OP_INPUTS(2, 3, "?")),
    ROW("SequenceErase", 11, 1, CONTROL_SEQUENCE_ERASE, OP_INPUTS(1, 2, "?")),
    ROW("SequenceAt", 11, 1, CONTROL_SEQUENCE_AT, OP_INPUTS(2, 2, "?")),
    ROW("SequenceLength", 11, 1, CONTROL_SEQUENCE_LENGTH, OP_INPUTS(1, 1, "?")),
    ROW("Optional", 15, 1, CONTROL_OPTIONAL, OP_INPUTS(0, 1, "?"),
        .attributes = optional_attributes),
    ROW("OptionalHasElement", 15, 1, CONTROL_OPTIONAL_HAS, OP_INPUTS(0, 1, "?")),
    ROW("OptionalGetElement", 15, 1, CONTROL_OPTIONAL_GET, OP_INPUTS(1, 1, "?")),
    ROW("SplitToSequence", 11, 1, CONTROL_SPLIT_TO_SEQUENCE, OP_INPUTS(1, 2, "?"),
        .attributes = split_attributes),
    ROW("ConcatFromSequence", 11, 1, CONTROL_CONCAT_FROM_SEQUENCE, OP_INPUTS(1, 1, "?"),
        .attributes = join_attributes),
};
const size_t n_op_rows_control = sizeof op_rows_control / sizeof op_rows_control[0];
