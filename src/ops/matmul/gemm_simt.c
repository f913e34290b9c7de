/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers a GEMM to gemm_simt, the tiled implementation for GPUs. Kernel: cl/matmul/gemm_simt.cl.
 */
#include "ops/lowering/work.h"
#include "ops/matmul/gemm_impls.h"
#include "ops/matmul/gemm_step.h"

void gemm_simt_steps(lower_context *c, candidate *impl, const gemm_job *j, simt_tile t)
{
    step_builder *b = &c->build;
    const char *prelude = prelude_text(
        b,
        "P_T=%d P_FMA=%d P_VEC=1 P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d P_QUADS=%d "
        "P_TA=%d P_TB=%d %s",
        (int)j->dtype, work_fma(c), t.wg_m, t.wg_n, t.tm, t.tn, t.tk, t.quads, j->a.rs < j->a.cs,
        j->b.rs < j->b.cs, epilogue_prelude(c, &j->epilogue));
    step *s = step_kernel(b, impl, "gemm_simt", "gemm_simt", prelude);
    gemm_step_operands(b, s, j, &j->a, &j->b);
    epilogue_args(c, s, &j->epilogue, j->dtype, j->c.at);
    gemm_step_work(s, j);
    work_range_3d(c, s, work_ceil_div(j->n, t.tn), (uint64_t)t.wg_n, work_ceil_div(j->m, t.tm),
                  (uint64_t)t.wg_m, j->batch);
}
