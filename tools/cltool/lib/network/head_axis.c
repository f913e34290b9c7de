/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of nodes are not read here: clg_model_batch proves whether a node computes along an
 * axis, as it proves that the rows of a batch are independent. See head_axis.h.
 */
#include "head_axis.h"

#include "output.h"

#include <string.h>

/* How the classes pass through an operator. */
typedef enum passing { STAYS, OF_CHANNELS, OVER_CLASSES, MOVES } passing;
static const struct {
    const char *op_type;
    passing passing;
} operators[] = {{"Identity", STAYS},       {"Cast", STAYS},
                 {"Relu", STAYS},           {"Sigmoid", STAYS},
                 {"Dropout", STAYS},        {"GlobalAveragePool", OF_CHANNELS},
                 {"Softmax", OVER_CLASSES}, {"LogSoftmax", OVER_CLASSES},
                 {"ReduceMean", MOVES},     {"Flatten", MOVES},
                 {"Squeeze", MOVES}};
#define N_OPERATORS (sizeof operators / sizeof *operators)

/* Returns the row of an operator; N_OPERATORS: there is none. */
static size_t find(const clg_node_info *n)
{
    size_t i = 0;
    while (i < N_OPERATORS && strcmp(operators[i].op_type, n->op_type) != 0) i++;
    return n->domain[0] == '\0' ? i : N_OPERATORS;
}

bool head_axis_knows(const clg_node_info *node) { return find(node) < N_OPERATORS; }

static int refuse(const clg_node_info *n, const char *why, int axis)
{
    return fail_usage("--head: '%s' (%s) %s %d", printable(n->name), n->op_type, why, axis);
}

/* Finds whether the node computes over an axis; if not, *out_axis is where it is in the result. */
static int over_axis(const clg_model *part, int axis, bool *out_is_over, int *out_axis)
{
    clg_batch_options options = CLG_BATCH_OPTIONS_INIT;
    options.input_axes = &axis;
    const clg_status status = clg_model_batch(part, &options, NULL, out_axis);
    *out_is_over = status == CLG_ERROR_UNSUPPORTED_OPERATOR;
    return status == CLG_OK || *out_is_over ? CODE_DONE : fail_status(status, STAGE_READ, "--head");
}

/* Softmax: over the classes, and over other axes only where they have one element. */
static int check_softmax(const clg_model *part, const clg_node_info *n, int axis)
{
    const clg_port *x = clg_model_input(part, 0);
    int code = CODE_DONE;
    for (int d = 0; d < x->rank && code == CODE_DONE; d++) {
        bool is_over;
        int to;
        code = over_axis(part, d, &is_over, &to);
        if (code == CODE_DONE && d == axis && !is_over)
            code = refuse(n, "does not compute over the classes, which are axis", axis);
        if (code == CODE_DONE && d != axis && is_over && x->dims[d] != 1)
            code = refuse(n, "computes over more than the classes: axis", d);
    }
    return code;
}

/* Rows stay rows, and classes move to another axis. */
static int move(const clg_model *part, const clg_node_info *n, int *axis)
{
    bool is_over;
    int to = 0;
    int code = over_axis(part, 0, &is_over, &to);
    if (code == CODE_DONE && (is_over || to != 0)) code = refuse(n, "mixes rows, axis", 0);
    if (code == CODE_DONE) code = over_axis(part, *axis, &is_over, &to);
    if (code == CODE_DONE && (is_over || to < 0))
        code = refuse(n, "mixes the classes, axis", *axis);
    *axis = to;
    return code;
}

int head_axis_follow(const clg_model *model, const clg_node_info *n, int *axis)
{
    clg_model *part;
    const passing how = operators[find(n)].passing;
    if (how == STAYS) return CODE_DONE;
    if (how == OF_CHANNELS)
        return *axis == 1 ? CODE_DONE : refuse(n, "mixes the classes, axis", *axis);
    const clg_status status = clg_model_extract(model, &n->inputs[0], 1, &n->outputs[0], 1, &part);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "--head");
    const int rank = clg_model_input(part, 0)->rank;
    int code = CODE_DONE;
    if (clg_model_n_inputs(part) != 1 || rank <= *axis)
        code = fail_usage("--head: '%s' (%s) has axes that are not known", printable(n->name),
                          n->op_type);
    else
        code = how == MOVES ? move(part, n, axis) : check_softmax(part, n, *axis);
    clg_model_free(part);
    return code;
}
