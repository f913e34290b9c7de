/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the fields and internal functions of a kernel, private to src/ocl.
 */
#ifndef CLG_OCL_KERNEL_H
#define CLG_OCL_KERNEL_H

#include "ocl/kernel_args.h"
#include "ocl/ocl_context.h"
#include "ocl/queue/launch_guard.h"

struct ocl_kernel {
    ocl_context *context;
    ocl_program *program;
    cl_kernel handle;
    char *entry;
    uint64_t entry_hash;
    kernel_args args; /* as set, for trials (trial.h) */
    /* Largest work-group of this kernel, in work-items; 0: the driver does not report it. */
    size_t max_items;
    /* Configuration of the previous launch; launching in the same one again costs a comparison. */
    uint64_t last_form[5];
    /* The last launch for which launch_guard_knows returned true, and the guard's epoch then. */
    launch_form known;
    uint64_t known_epoch;
};

/* Returns the description of a launch by which launch_guard.h distinguishes launches. */
launch_form kernel_launch_form(const ocl_kernel *k, uint32_t n_dims, const size_t *global,
                               const size_t *local);
/* Returns the same as launch_guard_knows, usually without taking its lock. */
bool kernel_launch_is_known(ocl_kernel *k, const launch_form *form);

/* Shrinks a work-group to the size that this kernel allows on this device: its use of registers may
 * leave room for fewer work-items than the device's limit. Only for kernels without a fixed group
 * size and without local memory, whose work-items do not depend on groups. Sizes of other kernels
 * stay as they are: rusticl of Mesa 22.3 accepts more than it reports. */
clg_status kernel_fit_group(const ocl_kernel *k, uint32_t n_dims, size_t *local);

/* Builds a draft's kernel and sets the arguments recorded so far. */
clg_status kernel_build_draft(ocl_kernel *k);

/* Returns the hash of a launch configuration (see program.h). local may be NULL: the driver
 * chooses. */
uint64_t kernel_form(const ocl_context *ocl, uint64_t entry_hash, uint32_t n_dims,
                     const size_t *global, const size_t *local);

/* Records the configuration of a launch before it is enqueued. If it is new to the program, first
 * has the compile helper try it, and returns that trial's error. offset: NULL for none. */
clg_status kernel_note_launch(ocl_kernel *k, uint32_t n_dims, const size_t *offset,
                              const size_t *global, const size_t *local);

#endif
