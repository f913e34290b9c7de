/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of gradients of the layers of networks: normalisations, poolings and convolutions.
 */
#ifndef CLG_TESTS_LAYER_CASES_H
#define CLG_TESTS_LAYER_CASES_H

#include "support/cases/gradient/gradient_case.h"

extern const gradient_case layer_norms[];
extern const size_t n_layer_norms;
extern const gradient_case layer_more_norms[];
extern const size_t n_layer_more_norms;
extern const gradient_case layer_pools[];
extern const size_t n_layer_pools;
extern const gradient_case layer_convolutions[];
extern const size_t n_layer_convolutions;
extern const gradient_case layer_transposed_convolutions[];
extern const size_t n_layer_transposed_convolutions;

#endif
