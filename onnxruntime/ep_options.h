/* SPDX-License-Identifier: Apache-2.0
 *
 * The provider's options of a session: precision, kernels, cache_dir, strict, cpu_threads, device.
 */
#ifndef CLG_ONNXRUNTIME_EP_OPTIONS_H
#define CLG_ONNXRUNTIME_EP_OPTIONS_H

#include "ep_host.h"

typedef struct ep_options {
    char *device;    /* a selector; NULL: the device that the session was given */
    char *cache_dir; /* NULL: the library's default */
    uint32_t cpu_threads;
    bool strict;
    clg_precision precision;
    clg_kernel_class kernels;
} ep_options; /* all zeros: defaults */

/* Reads the entries "ep.<provider>.<option>" of a session's configuration. INVALID_ARGUMENT for an
 * unknown option or value; the message lists what there is. */
clg_status ep_options_read(const ep_host *host, const OrtSessionOptions *session_options,
                           ep_options *out_options);
void ep_options_deinit(ep_options *options);

#endif
