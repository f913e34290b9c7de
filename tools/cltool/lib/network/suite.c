/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the models of `cltool bench --suite`. See suite.h.
 */
#include "suite.h"

/* LayerNormalization has been an operator since version 17. */
#define SUITE_OPSET 17

const suite_model *const suite_models[] = {
    &suite_mlp, &suite_lstm, &suite_mobilenetv2, &suite_resnet50, &suite_bert, &suite_gpt2, NULL};

int suite_build(const suite_model *m, uint64_t seed, int64_t shrink, clg_model **out_model,
                uint64_t *out_n_parameters)
{
    net n;
    net_begin(&n, SUITE_OPSET, m->scheme, seed);
    m->add(&n, m->table, shrink);
    if (out_n_parameters) *out_n_parameters = n.n_elements;
    return net_end(&n, out_model);
}
