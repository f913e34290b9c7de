/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads CLBlast at run time and reports its availability, computes the buffer extents and number of
 * calls of a GEMM, and releases CLBlast's resources.
 */
#ifndef CLG_OCL_BLAS_H
#define CLG_OCL_BLAS_H

#include "ocl/ocl_context.h"

/* Releases CLBlast's resources; call it when a context that used CLBlast is freed. With the last
 * such context, and with one of which the device was lost, CLBlast's own program cache is cleared,
 * because it would keep their cl_contexts alive. */
void blas_forget_context(bool is_lost);

/* Returns whether a GEMM is computed by one call of CLBlastSgemmStridedBatched. */
bool blas_is_batched(const ocl_gemm *g);
/* Returns how many calls of CLBlast compute a GEMM: 1, or one per matrix. */
int64_t blas_n_calls(const ocl_gemm *g);
/* Computes the number of elements, from the start of its buffer, that a GEMM may access in each
 * operand: A, B, C. */
void blas_extents(const ocl_gemm *g, int64_t out_n_elems[3]);
/* Opens the CLBlast of this identity (ocl_blas_identity) if this process has not opened one yet.
 * UNSUPPORTED_DEVICE when another one is open. Call it before other threads use CLBlast. */
clg_status blas_open(const char *identity);

/* Returns "" when CLBlast is available, else the reason why it is not. */
const char *blas_why_not(void);

#endif
