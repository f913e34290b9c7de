/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs trials: compiles every program in the helper process (helper.h) before this process does. A
 * trial builds a program there and launches its kernel once, since drivers compile at either point,
 * or computes a GEMM with CLBlast there. It passes or fails. A crash of a driver's compiler is
 * cached for this device, driver and source text; from then on the program is refused with an error
 * that describes the crash. `form` is a launch configuration: see program.h.
 */
#ifndef CLG_OCL_TRIAL_H
#define CLG_OCL_TRIAL_H

#include "base/process.h"
#include "ocl/program.h"

struct helper_request;

/* The value of form that denotes the build of a program without a launch. */
#define TRIAL_FORM_OF_BUILD 0

/* The results of a context's trials: passes and failures (refusals). */
typedef struct trial_table {
    mutex lock;       /* guards the fields below */
    hash_map results; /* key of a trial -> TRIAL_PASSED, or 1 + an index of refusals */
    char **refusals;  /* error messages */
    size_t n_refusals, capacity;
    /* Whether the cache was searched for a record of a compiler crash on this device,
     * and whether it was found. */
    bool searched;
    bool has_mark;
} trial_table;

clg_status trial_table_init(trial_table *t);
void trial_table_deinit(trial_table *t);

/* Tests in the helper that a program builds; call it before building the program here. Returns
 * KERNEL_BUILD when the driver's compiler rejects the program or crashes on it. Returns CLG_OK also
 * where no trial is possible; then a log line says that the build runs in this process. */
clg_status trial_of_build(ocl_context *ocl, ocl_program *p, const char *entry);
/* Tests a launch in the helper with the kernel's current arguments; call it before the first launch
 * in a configuration. offset may be NULL. Returns errors as trial_of_build does. */
clg_status trial_of_launch(ocl_kernel *k, uint64_t form, uint32_t n_dims, const size_t *offset,
                           const size_t *global, const size_t *local,
                           process_keep_waiting keep_waiting, void *user);
/* Tests a launch of p as a request describes it, which was made for another program of the same
 * text. Returns errors as trial_of_build does. */
clg_status trial_of_request(ocl_context *ocl, ocl_program *p, uint64_t form,
                            const struct helper_request *request);
/* Tests a GEMM of CLBlast in the helper, which computes a small one that launches the same kernels
 * (trial_gemm.c); call it before the GEMM runs here, since CLBlast compiles its own kernels.
 * Returns KERNEL_BUILD when the driver's compiler rejects them or crashes, and CLG_OK also where no
 * trial is possible. g needs no buffers. */
clg_status trial_of_gemm(ocl_context *ocl, const ocl_gemm *g, process_keep_waiting keep_waiting,
                         void *user);
/* Returns whether trial_of_gemm would return CLG_OK without running a trial. */
bool trial_gemm_has_passed(ocl_context *ocl, const ocl_gemm *g);
/* Returns whether a trial of a CLBlast routine that this GEMM may call has failed; if so, sets the
 * thread's error text. Buffer offsets need not be final. Runs no trial. */
bool trial_gemm_has_failed(ocl_context *ocl, const ocl_gemm *g);
/* Writes the small GEMM that represents call i (below blas_n_calls) of g in its trial, and returns
 * the key of the class of GEMMs that it represents. */
hash128 trial_gemm_class(const ocl_gemm *g, int64_t i, ocl_gemm *out_small);
/* Records in the cache that p compiles in these launch configurations; for drivers whose binaries
 * cannot be cached. */
void trial_keep_passes(ocl_context *ocl, const ocl_program *p, const uint64_t *forms,
                       size_t n_forms);
/* Returns whether trial_has_failed may return true for any launch. Check it first, because
 * trial_has_failed reads the cache for each launch. */
bool trial_knows_refusals(ocl_context *ocl);
/* Returns the number of failures in the context's table. */
size_t trial_n_refusals(ocl_context *ocl);
/* Returns whether a trial of this launch has failed, in this process or an earlier one; if so, sets
 * the thread's error text. Runs no trial. */
bool trial_has_failed(ocl_context *ocl, hash128 program_key, uint64_t form);
/* Transfers ownership of the binary that a trial of p produced to the caller; returns false when
 * there is none. */
bool trial_take_binary(ocl_context *ocl, ocl_program *p, char **out_binary,
                       size_t *out_binary_bytes);
/* Reads the binary of p, including its compiled kernels, in the helper. *out_data (release with
 * memory_free) has prefix_bytes free bytes before the binary. It is NULL with CLG_OK where there is
 * no helper; then the binary may be read in this process. */
clg_status trial_read_binary(ocl_context *ocl, ocl_program *p, size_t prefix_bytes, char **out_data,
                             size_t *out_binary_bytes);

#endif
