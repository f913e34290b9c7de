/* SPDX-License-Identifier: Apache-2.0
 *
 * CLBlast, as contexts need it.
 */
#ifndef CLG_OCL_BLAS_H
#define CLG_OCL_BLAS_H

#include "ocl/ocl_context.h"

/* Call when a context that used CLBlast is freed. With the last one, CLBlast's own program cache is
 * cleared, because it would keep their cl_contexts alive. */
void blas_forget_context(void);

/* Returns "" when the library is there, else why it is not. */
const char *blas_why_not(void);

#endif
