/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes of a graph the provider takes.
 */
#ifndef CLG_ONNXRUNTIME_EP_CAPABILITY_H
#define CLG_ONNXRUNTIME_EP_CAPABILITY_H

#include "ep_provider.h"

/* Claims groups of the graph's nodes, and logs what stays elsewhere and why. A graph that cannot be
 * read as a model is logged and left alone. Errors: OUT_OF_HOST_MEMORY, those of ONNX Runtime. */
clg_status ep_capability_claim(ep_provider *provider, const OrtGraph *graph,
                               OrtEpGraphSupportInfo *support);

#endif
