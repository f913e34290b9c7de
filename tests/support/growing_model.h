/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose state grows by one with each run: decoders with a key/value cache, as exporters write them. Inputs are
 * `input_ids` int64 [batch,1] and `past_K` float32 [2,batch,heads,length,width]; each `present_K` is one longer than its
 * `past_K`.
 */
#ifndef CLG_TESTS_GROWING_MODEL_H
#define CLG_TESTS_GROWING_MODEL_H

#include <clgraph/clgraph.h>

/* A small one in plain operators: embeddings, attention over the cache, two layers; shapes and positions are computed from
 * the length of the cache. n_positions: the longest cache. Weights are made up, the same each time. */
clg_status growing_model_make(int64_t n_positions, clg_model **out_model);

/* One from a file whose tables are for `n_before` positions only: tables [n_before,width] of embeddings and square masks
 * [1,1,n_before,n_before] become n_positions long. IO when there is no such file. */
clg_status growing_model_load(const char *path, int64_t n_before, int64_t n_positions,
                              clg_model **out_model);

/* An empty cache and ones for all other inputs; dimensions that are free are 1. */
clg_status growing_model_start(clg_session *session, const clg_model *model);
/* Each `present_K` feeds `past_K` of the next run, on the device. */
clg_status growing_model_link(clg_session *session, const clg_model *model);

/* "present_3" for "past_3"; NULL when the input is no cache. Overwritten by the next call of the thread. */
const char *growing_model_present(const char *input);

#endif
