/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites models into others that must give the same results.
 */
#ifndef CLG_TESTS_METAMORPHIC_REWRITES_H
#define CLG_TESTS_METAMORPHIC_REWRITES_H

#include <clgraph/clgraph.h>

/* Creates a model in which each node occurs twice, over the same inputs; its outputs are those of
 * the model and then, in the same order, those of the copies. With interleaved, readers of a value
 * read the original and the copy in turn, so that the two copies depend on each other. Nodes of
 * subgraphs are copied with the node that has the subgraph. */
clg_status meta_duplicate(const clg_model *model, bool interleaved, clg_model **out_model);

/* Creates a model whose tensor inputs and outputs have their axes reversed, by Transpose nodes
 * around the given one. */
clg_status meta_transpose(const clg_model *model, clg_model **out_model);

#endif
