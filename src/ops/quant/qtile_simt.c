/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets parameters and NDRanges of the tiled kernels of 8-bit GEMMs and convolutions. See
 * qtile_simt.h.
 */
#include "ops/quant/qtile_simt.h"

#include "base/checked.h"
#include "ops/lowering/grid.h"
#include "ops/lowering/work.h"

bool qtile_fits(size_t n, const int64_t *factors, int64_t max, int64_t *out)
{
    int64_t product = 1;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        if (!checked_mul_i64(product, factors[i], &product)) return false;
    *out = product;
    return product <= max;
}

const simt_tile qtile_packing = {8, 8, 4, 4, 8, true};

const char *qtile_prelude(step_builder *b, const qtile_dtypes *d, const simt_tile *t, int dot,
                          const char *name, int value)
{
    return prelude_text(b,
                        "P_A=%d P_B=%d P_Y=%d P_VEC=1 P_FP64=0 P_INDEX=32 P_ZERO_A=%d P_ZERO_B=%d "
                        "P_WG_M=%d P_WG_N=%d P_TM=%d P_TN=%d P_TK=%d P_DOT=%d %s=%d",
                        (int)d->a, (int)d->b, (int)d->y, d->a_zero, d->b_zero, t->wg_m, t->wg_n,
                        t->tm, t->tn, t->tk, dot, name, value);
}

void qtile_range(lower_context *c, step *s, const simt_tile *t, int64_t m, int64_t n, int64_t deep)
{
    work_range_3d(c, s, work_ceil_div(n, t->tn), (uint64_t)t->wg_n, work_ceil_div(m, t->tm),
                  (uint64_t)t->wg_m, deep);
}

void qtile_packing_range(lower_context *c, step *s, int64_t across, int64_t down, int64_t deep)
{
    const uint64_t local[3] = {work_power_of_two(across, 64), 1, 1};
    work_range(c, s, 3, (int64_t[]){across, down, deep}, local);
}
