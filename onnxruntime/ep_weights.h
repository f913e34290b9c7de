/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that outlive ONNX Runtime's: in a mapped file without a name, so that they take no memory
 * once they are on the device.
 */
#ifndef CLG_ONNXRUNTIME_EP_WEIGHTS_H
#define CLG_ONNXRUNTIME_EP_WEIGHTS_H

#include "base/threads.h"
#include "ep_model.h"
#include "ep_options.h"

typedef struct ep_weights {
    refcount users; /* the program and the model */
    struct weights_store *store;
    ep_weight *items;
    size_t n_items;
} ep_weights;

/* Copies the weights of a model to a file in the cache folder, which is removed at once, or into
 * memory where that cannot be: with the cache in memory, on a full disk. */
clg_status ep_weights_copy(const ep_host *host, const ep_onnx *onnx, const ep_options *options,
                           ep_weights **out_weights);
/* Releases the physical memory of weights in a file; accesses read them again. Accepts NULL. */
void ep_weights_unload(const ep_weights *weights);
void ep_weights_release(ep_weights *weights); /* one user; accepts NULL */

#endif
