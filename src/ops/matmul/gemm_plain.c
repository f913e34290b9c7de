/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a GEMM of any dtype to gemm_plain, with one work-item per element of the result. Kernel:
 * cl/matmul/gemm_plain.cl.
 */
#include "ops/lowering/work.h"
#include "ops/matmul/gemm_impls.h"
#include "ops/matmul/gemm_step.h"
#include "tensor/dtype.h"

#include <math.h>

clg_status gemm_plain_check(const lower_context *c, const gemm_job *j)
{
    const float alpha = j->epilogue.alpha, beta = j->epilogue.beta;
    CLG_TRY(work_check_dtype(c, j->dtype));
    if (j->epilogue.activation != 0 || j->epilogue.has_residual)
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "nothing is fused with a matmul of %s",
                           dtype_name(j->dtype));
    if (j->dtype != CLG_FLOAT64 && (floorf(alpha) != alpha || floorf(beta) != beta))
        return lower_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "alpha or beta is not whole where numbers are %s", dtype_name(j->dtype));
    return CLG_OK;
}

void gemm_plain_steps(lower_context *c, candidate *impl, const gemm_job *j)
{
    step_builder *b = &c->build;
    const epilogue_ops *e = &j->epilogue;
    const bool bias = e->bias != BIAS_NONE;
    step *s = step_kernel(b, impl, "gemm_plain", "gemm_plain",
                          prelude_text(b, "P_BIAS=%d P_T=%d P_VEC=1", bias, (int)j->dtype));
    gemm_step_operands(b, s, j, &j->a, &j->b);
    const gemm_matrix addend = {
        bias ? e->bias_at : j->c.at, e->bias_rs, e->bias_cs, e->bias_b0, e->bias_b1, false};
    gemm_step_matrix(b, s, &addend, j->dtype);
    STEP_FLOATS(b, s, e->alpha, e->beta);
    gemm_step_work(s, j);
    const uint64_t across = work_power_of_two(j->n, 64);
    work_range_3d(c, s, j->n, across, j->m, 64 / across, j->batch);
}
