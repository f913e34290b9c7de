/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel holds, for the files of this folder.
 */
#ifndef CLG_OCL_KERNEL_H
#define CLG_OCL_KERNEL_H

#include "ocl/context.h"

struct ocl_kernel {
    ocl_context *context;
    program *program;
    cl_kernel handle;
    char *entry;
    /* The form of the launch before, so that only a change costs more than a compare. */
    uint64_t last_form[5];
};

/* Tells the program of a launch form that is new to this kernel. */
void kernel_note_launch(ocl_kernel *k, uint32_t n_dims, const size_t *global, const size_t *local);

#endif
