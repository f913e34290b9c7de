/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the classes of a classification layer are in the results of the nodes after it.
 */
#ifndef CLTOOL_HEAD_AXIS_H
#define CLTOOL_HEAD_AXIS_H

#include <clgraph/inspect.h>

/* Returns whether a node may follow the layer. */
bool head_axis_knows(const clg_node_info *node);
/* Follows an axis of the first input of a node that head_axis_knows into its first output: *axis is
 * that of the classes before and after. One that mixes classes
 * or rows, or a Softmax that is not over the classes alone, is an error of usage that names it. */
int head_axis_follow(const clg_model *model, const clg_node_info *node, int *axis);

#endif
