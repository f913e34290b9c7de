/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares CLBlast's functions, opened at run time. Private to this folder.
 */
#ifndef CLG_OCL_BLAS_LIBRARY_H
#define CLG_OCL_BLAS_LIBRARY_H

#include "ocl/blas/blas.h"

#include <clblast_c.h>

typedef struct blas_api {
    __typeof__(&CLBlastSgemm) sgemm;
    __typeof__(&CLBlastSgemmStridedBatched) sgemm_strided_batched;
    CLBlastStatusCode (*clear_cache)(void);
} blas_api;

/* CLBlast's functions; valid once blas_why_not has returned "". */
extern blas_api blas;

#endif
