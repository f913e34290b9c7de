/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes requests to the compile helper in the calling process: builds a program, creates a
 * kernel and launches it once, or computes a GEMM with CLBlast. Used only by src/helper.
 */
#ifndef CLG_OCL_HELPER_EXECUTE_H
#define CLG_OCL_HELPER_EXECUTE_H

#include "ocl/helper/helper_message.h"
#include "ocl/ocl.h"

/* The device of a helper process. */
typedef struct helper_device {
    ocl_context *context;
    /* The program (cl_program) of the last request, and the hash of its source: the next request
     * often uses it again. */
    hash128 last_text;
    void *last_program;
} helper_device;

/* Opens the device that `hello` names, without cache, probes or a helper: the device at its index
 * if that has its identity, else the first device that has it. The device is never closed. */
clg_status helper_open_device(const helper_hello *hello, helper_device *out_device);
/* Executes a request. Buffers have the sizes in the request, and are filled with the data in it or
 * with zeros. Runs only one work-group of the launch where that compiles the same code as the whole
 * launch. */
void helper_execute(helper_device *device, const helper_request *request, helper_reply *out_reply);

#endif
