/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes requests to the compile helper in the calling process: builds a program, creates a
 * kernel and launches it once, or computes a GEMM with CLBlast. Used only by src/helper.
 */
#ifndef CLG_OCL_HELPER_EXECUTE_H
#define CLG_OCL_HELPER_EXECUTE_H

#include "ocl/helper/helper_message.h"
#include "ocl/ocl.h"

typedef struct helper_device {
    ocl_context *context;
    /* Hash of the text of the last program, and that program: adjacent requests often use the same
     * one. */
    hash128 last_text;
    void *last_program;
} helper_device;

/* Opens the device of the hello, without cache, probes or a helper: by index if its identity
 * matches, else by identity. The device is never closed. */
clg_status helper_open_device(const helper_hello *hello, helper_device *out_device);
/* Executes a request. Buffers have the sizes in the request and are filled with zeros except for
 * given content. Only one work-group of the launch is run where that compiles the same code as the
 * whole launch. */
void helper_execute(helper_device *device, const helper_request *request, helper_reply *out_reply);

#endif
