/* SPDX-License-Identifier: Apache-2.0
 *
 * The execution provider of one session of ONNX Runtime, an OrtEp.
 */
#ifndef CLG_ONNXRUNTIME_EP_PROVIDER_H
#define CLG_ONNXRUNTIME_EP_PROVIDER_H

#include "ep_contexts.h"

typedef struct ep_provider {
    OrtEp ep; /* first: ONNX Runtime gives back its address */
    ep_host host;
    ep_contexts *contexts; /* the factory's */
    ep_options options;
    clg_context *context; /* acquired from contexts */
    bool on_device;       /* tensors that cross the border are in memory of the device */
    char
        *claimed_graph; /* before EP_KNOWS_PARENTS: name of the graph with claimed nodes, or NULL */
} ep_provider;

/* Creates the provider of a session on a device (a selector), which the option device overrides.
 * host->logger: the session's, which outlives the provider. */
clg_status ep_provider_create(const ep_host *host, ep_contexts *contexts, const char *device,
                              const OrtSessionOptions *session_options, ep_provider **out_provider);
void ep_provider_free(ep_provider *provider); /* accepts NULL */

#endif
