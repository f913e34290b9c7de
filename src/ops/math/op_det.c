/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Det (ONNX 11): determinants of the square matrices in the last two dimensions. Kernel:
 * cl/math/det.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>

static clg_status det_infer(op_context *c)
{
    const shape *x = &c->inputs[0].dims;
    if (x->rank < 2)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and must hold matrices",
                        x->rank);
    shape out = *x;
    out.rank -= 2;
    const int64_t rows = x->dims[out.rank], cols = x->dims[out.rank + 1];
    if (rows != cols && rows != DIM_UNKNOWN && cols != DIM_UNKNOWN)
        return op_error(c, CLG_ERROR_SHAPE,
                        "matrices of %" PRId64 " x %" PRId64 " have no determinant", rows, cols);
    fact_set(&c->outputs[0], c->outputs[0].dtype, &out);
    return CLG_OK;
}

/* On a GPU, matrices up to this size are computed by single work-items, larger ones by work-groups.
 */
#define SMALL 4

static clg_status det_lower(lower_context *c)
{
    const shape *x = &c->inputs[0].dims;
    const clg_dtype dtype = c->inputs[0].dtype,
                    sums = dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    const int64_t n = x->dims[x->rank - 1];
    const bool simd = lower_is_simd(c), alone = simd || n <= SMALL;
    const uint64_t local = alone ? 1 : work_group_local(c, 64);
    int64_t batch, elements;
    size_t size_bytes;
    CLG_TRY(work_check_dtype(c, dtype));
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &batch));
    CLG_TRY(shape_n_elements(x, &elements));
    if (!dtype_bytes(sums, elements, &size_bytes)) return error_no_memory(SIZE_MAX);
    step_builder *b = &c->build;
    candidate *impl = step_candidate(b, "det");
    const operand matrices = step_scratch(b, impl, size_bytes);
    step *k = step_kernel(b, impl, "det", "det",
                          prelude_text(b, "P_LOCAL=%d P_T=%d P_VEC=%d", (int)local, (int)dtype,
                                       simd ? work_lanes(c, n) : 1));
    STEP_BUFFERS(b, k, {operand_input(0), dtype}, {matrices, sums}, {operand_output(0), dtype});
    STEP_INTS(b, k, batch, n);
    k->flops = (double)elements * (double)n * 2 / 3;
    k->bytes = (double)elements * (double)(dtype_size(dtype) + 2 * dtype_size(sums));
    if (alone)
        work_range_1d(c, k, batch, simd ? 1 : 64);
    else
        work_range_groups(c, k, batch, local);
    return CLG_OK;
}

static const op_types types[] = {{'T', DTYPES_FLOAT}, {0}};

const op_row op_rows_det[] = {
    {.name = "Det",
     .grad = GRAD_BY(grad_pass_det),
     .batch = OP_BATCH(.pass = batch_pass_drop, .rows = 1, .fallback = -2, .onward = true),
     .since = 11,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .infer = det_infer,
     .lower = det_lower},
};
const size_t n_op_rows_det = sizeof op_rows_det / sizeof *op_rows_det;
