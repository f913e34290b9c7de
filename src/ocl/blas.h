/* SPDX-License-Identifier: Apache-2.0
 *
 * What contexts need to know of CLBlast.
 */
#ifndef CLG_OCL_BLAS_H
#define CLG_OCL_BLAS_H

#include "ocl/ocl_context.h"

/* A context that used CLBlast goes: with the last one, CLBlast's own cache of programs is emptied, which would
 * keep their cl_contexts alive. */
void blas_forget_context(void);

/* "" when the library is there, else the reason that it is not. */
const char *blas_why_not(void);

#endif
