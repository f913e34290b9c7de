/* SPDX-License-Identifier: Apache-2.0
 *
 * The compile helper's side of a request: builds a program, creates a kernel, launches it once, or
 * computes a GEMM with CLBlast, in the calling process. Used only by src/helper.
 */
#ifndef CLG_OCL_HELPER_EXECUTE_H
#define CLG_OCL_HELPER_EXECUTE_H

#include "ocl/helper/helper_message.h"
#include "ocl/ocl.h"

typedef struct helper_device {
    ocl_context *context;
    /* Text of the last program, kept because requests for one program follow each other. */
    hash128 last_text;
    void *last_program;
} helper_device;

/* Opens the device of the hello, without cache, probes or a helper: by index, else by identity. It
 * is never closed. */
clg_status helper_open_device(const helper_hello *hello, helper_device *out_device);
/* Executes a request. Buffers have the sizes of the request and are all zeros except for given
 * content. Only one work-group of the launch is run, which compiles what the whole launch would. */
void helper_execute(helper_device *device, const helper_request *request, helper_reply *out_reply);

#endif
