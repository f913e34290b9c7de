/* SPDX-License-Identifier: Apache-2.0
 *
 * The compile helper's side of a request: builds a program, makes a kernel, launches it once, in whatever process calls. Used by
 * src/helper alone.
 */
#ifndef CLG_OCL_HELPER_EXECUTE_H
#define CLG_OCL_HELPER_EXECUTE_H

#include "ocl/helper/helper_message.h"
#include "ocl/ocl.h"

typedef struct helper_device {
    ocl_context *context;
    hash128
        last_text; /* of the program built last, since requests for one program follow each other */
    void *last_program;
} helper_device;

/* Opens the device of the hello, without store, probes or a helper: by index, else by identity. It is never closed. */
clg_status helper_open_device(const helper_hello *hello, helper_device *out_device);
/* Buffers have the sizes of the request and are all zeros but for given content. Of the launch one work-group is run, which
 * compiles what the whole launch would. */
void helper_execute(helper_device *device, const helper_request *request, helper_reply *out_reply);

#endif
