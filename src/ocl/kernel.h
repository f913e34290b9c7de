/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel holds, for the files of this folder.
 */
#ifndef CLG_OCL_KERNEL_H
#define CLG_OCL_KERNEL_H

#include "ocl/kernel_args.h"
#include "ocl/ocl_context.h"
#include "ocl/queue/launch_guard.h"

struct ocl_kernel {
    ocl_context *context;
    program *program;
    cl_kernel handle;
    char *entry;
    uint64_t entry_hash;
    kernel_args args;  /* as set, where trials may want them (trial.h) */
    size_t most_items; /* of a work-group, as it was compiled; 0: the driver does not tell */
    /* The form of the launch before, so that only a change costs more than a compare. */
    uint64_t last_form[5];
    /* A launch that was known to launch_guard.h in its epoch. */
    launch_form known;
    uint64_t known_epoch;
};

/* What launch_guard.h tells this launch apart by. */
launch_form kernel_launch_form(const ocl_kernel *k, uint32_t n_dims, const size_t *global,
                               const size_t *local);
/* launch_guard_knows, mostly without its lock. */
bool kernel_launch_is_known(ocl_kernel *k, const launch_form *form);

/* Makes groups as small as this kernel needs them on this device: registers may leave room for fewer work-items than the
 * device has otherwise. Only where the kernel does not mind: it has no group size of its own and no local memory, so that
 * its work-items know nothing of groups. Others are left as they are, for the driver to judge: rusticl of Mesa 22.3 takes more
 * than it tells. */
clg_status kernel_fit_group(const ocl_kernel *k, uint32_t n_dims, size_t *local);

/* Makes a draft a kernel, with the arguments that were set. */
clg_status kernel_build_draft(ocl_kernel *k);

/* The form of a launch, by which program_note_form knows it. local may be NULL. */
uint64_t kernel_form(const ocl_context *c, uint64_t entry_hash, uint32_t n_dims,
                     const size_t *global, const size_t *local);

/* Before a launch: has a form that is new to the program tried by the compile helper, and notes it. */
clg_status kernel_note_launch(ocl_kernel *k, uint32_t n_dims, const size_t *global,
                              const size_t *local);

#endif
