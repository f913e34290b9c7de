/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles everything in the helper (helper.h) before this process does: a trial builds a program
 * there and launches its kernel once, since drivers compile at either, or has CLBlast compute a
 * GEMM there. A crash of a driver's
 * compiler is cached for this device, driver and text, and the program is refused from then on with
 * an error that names the crash.
 */
#ifndef CLG_OCL_TRIAL_H
#define CLG_OCL_TRIAL_H

#include "base/process.h"
#include "ocl/program.h"

/* The form of a program's build, as distinct from its launches. */
#define TRIAL_FORM_OF_BUILD 0

/* Results of a context's trials. */
typedef struct trial_table {
    mutex lock;       /* guards the fields below */
    hash_map results; /* key of a trial -> TRIAL_PASSED, or a position in refusals */
    char **refusals;  /* error messages */
    size_t n_refusals, capacity;
    /* Whether the mark was looked up that an earlier process leaves of a refusal. */
    bool searched;
    bool has_mark;
} trial_table;

clg_status trial_table_init(trial_table *t);
void trial_table_deinit(trial_table *t);

/* Call before building the program from its text here. KERNEL_BUILD when the driver's compiler
 * rejects it or crashes on it. Also OK where no trial is possible; a log line then says that the
 * build is about to run in this process. */
clg_status trial_of_build(ocl_context *ocl, ocl_program *p, const char *entry);
/* Call before launching the kernel in a form that is new to its program, with its current
 * arguments. form: as for program_note_form. */
clg_status trial_of_launch(ocl_kernel *k, uint64_t form, uint32_t n_dims, const size_t *global,
                           const size_t *local, process_keep_waiting keep_waiting, void *user);
/* Call before a GEMM goes to CLBlast, which compiles its own kernels: has the helper compute one of
 * the same class (trial_gemm.c). KERNEL_BUILD when the driver's compiler crashes on it. Also OK
 * where no trial is possible. g needs no buffers. */
clg_status trial_of_gemm(ocl_context *ocl, const ocl_gemm *g, process_keep_waiting keep_waiting,
                         void *user);
/* Returns whether trial_of_gemm is OK without a trial. */
bool trial_gemm_has_passed(ocl_context *ocl, const ocl_gemm *g);
/* Returns whether a trial of the routine of CLBlast that this GEMM calls has failed; the thread's
 * error text then says how. Offsets may be any: what it may call is enough. Runs no trial. */
bool trial_gemm_has_failed(ocl_context *ocl, const ocl_gemm *g);
/* Writes the small GEMM that stands for call i of g (blas_n_calls) in its trial, and the key of the
 * class of problems that it stands for. */
hash128 trial_gemm_class(const ocl_gemm *g, int64_t i, ocl_gemm *out_small);
/* Caches that p compiles in the forms it was launched in: for drivers whose binaries cannot be
 * cached. */
void trial_keep_passes(ocl_context *ocl, const ocl_program *p, const uint64_t *forms,
                       size_t n_forms);
/* Returns whether trial_has_failed may be true for any launch. Check it first: trial_has_failed
 * reads the cache for each launch. */
bool trial_knows_refusals(ocl_context *ocl);
size_t trial_n_refusals(ocl_context *ocl);
/* Returns whether a trial of this launch has failed, here or in an earlier process; the thread's
 * error text then says how. Runs no trial. */
bool trial_has_failed(ocl_context *ocl, hash128 program_key, uint64_t form);
/* Moves the binary that a trial of p made to the caller, who owns it; false when there is none. */
bool trial_take_binary(ocl_context *ocl, ocl_program *p, char **out_binary,
                       size_t *out_binary_bytes);
/* Reads the binary of p with its compiled kernels in the helper, after prefix_bytes (memory_free).
 * *out_data is NULL with CLG_OK where there is no helper; then it may be read here. */
clg_status trial_read_binary(ocl_context *ocl, ocl_program *p, size_t prefix_bytes, char **out_data,
                             size_t *out_binary_bytes);

#endif
