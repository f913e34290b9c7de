/* SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is compiled in this process that was not compiled by the helper first (helper.h): a trial builds a program there
 * and launches its kernel once, and drivers compile at either. What a driver's compiler died of is remembered in the store, for
 * this device, driver and text, and refused from then on as an error that names it.
 */
#ifndef CLG_OCL_TRIAL_H
#define CLG_OCL_TRIAL_H

#include "base/process.h"
#include "ocl/program.h"

/* The form under which a program's build is known, apart from launches. */
#define TRIAL_FORM_OF_BUILD 0

/* Results of a context's trials. */
typedef struct trial_table {
    mutex lock;      /* guards what follows */
    map results;     /* key of a trial -> TRIAL_PASSED, or a position in refusals */
    char **refusals; /* texts of errors */
    size_t n_refusals, capacity;
    bool searched; /* for the mark that earlier processes have left of a refusal */
    bool has_mark;
} trial_table;

clg_status trial_table_init(trial_table *t);
void trial_table_deinit(trial_table *t);

/* Before the program is built from its text here: KERNEL_BUILD when the driver's compiler refuses it or dies of it. OK too where
 * no trial can be made; a line of the log then says that the build is about to run in this process. */
clg_status trial_of_build(ocl_context *c, program *p, const char *entry);
/* Before the kernel is launched in a form that is new to its program, with the arguments it has now. form: as
 * program_note_form has it. */
clg_status trial_of_launch(ocl_kernel *k, uint64_t form, uint32_t n_dims, const size_t *global,
                           const size_t *local, process_keep_waiting keep_waiting, void *user);
/* Keeps in the store that p compiles in the forms it was launched in: for drivers whose binaries cannot be stored. */
void trial_keep_passes(ocl_context *c, const program *p, const uint64_t *forms, size_t n_forms);
/* Whether there may be a launch of which trial_has_failed is true: it asks the store for each. */
bool trial_knows_refusals(ocl_context *c);
size_t trial_n_refusals(ocl_context *c);
/* Whether a trial of this launch has failed, here or in an earlier process; the thread's error text then says how. Makes none. */
bool trial_has_failed(ocl_context *c, hash128 program_key, uint64_t form);
/* The binary that a trial of p made, owned by the caller; false when there is none. */
bool trial_take_binary(ocl_context *c, program *p, char **out_binary, size_t *out_binary_bytes);
/* The binary of p with its compiled kernels, from the helper, behind prefix_bytes (memory_free). *out_data is NULL with CLG_OK
 * where there is no helper, and then it may be read here. */
clg_status trial_read_binary(ocl_context *c, program *p, size_t prefix_bytes, char **out_data,
                             size_t *out_binary_bytes);

#endif
