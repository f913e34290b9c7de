/* SPDX-License-Identifier: Apache-2.0
 *
 * Proves which values of a graph carry the batch, operator by operator, so that a caller may divide
 * the rows of the inputs, run the graph on each part and concatenate the outputs. Works on a graph
 * as the model has it, before passes: see decision 63. Pure host code; any thread.
 */
#ifndef CLG_OPS_BATCH_AXES_H
#define CLG_OPS_BATCH_AXES_H

#include "ops/core/op.h"

#define BATCH_NONE (-1) /* the value does not carry the batch */

/* Each part has at least one row. Batches of more rows are not covered: models slice "to the end"
 * by large numbers, and count rows in float32. */
#define BATCH_MAX_ROWS ((int64_t)1 << 24)

/* What is asked of batch_find. */
typedef struct batch_request {
    /* By input of the graph: the axis that carries the batch, or BATCH_NONE. NULL: that of the
     * first dimension that is not fixed and has a name, and all dimensions of that name in other
     * inputs, one an input; where none has a name, axis 0 of all inputs where it is not fixed. */
    const int *input_axes;
    /* By input of the graph: its dimensions where the caller knows more than the model declares;
     * that of the batch counts as unknown. More is proved with more known dimensions. NULL, or a
     * rank of RANK_UNKNOWN: as declared. */
    const shape *input_dims;
} batch_request;

/* Finds the axes of the batch of a graph that ops_resolve accepted. out_inputs and out_outputs,
 * arrays of the caller by input and output of the graph, may be NULL. An entry is the axis along
 * which the value of a part is a contiguous slice of the whole run's value, in the order of the
 * rows: mostly 0, for the states of recurrent networks and caches also 1. An input's axis has the
 * number of rows as its size, an output's that times a number that does not depend on it, not
 * always 1 ([batch*seq, n]). BATCH_NONE: the value is the same in each part, whatever the batched
 * inputs are. `request` may be NULL. Errors, whose message says everything there is to say:
 * UNSUPPORTED_OPERATOR: the rows are not proved independent, with the node and the reason, "node
 * 's' (Softmax, opset 13): it computes over axis 0, which carries the batch"; or an output depends
 * on the number of rows. INVALID_ARGUMENT: no input carries the batch, or one that shall has no
 * such axis. */
clg_status batch_find(const graph *g, const batch_request *request, int *out_inputs,
                      int *out_outputs);

#endif
