/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers GEMMs of 8-bit integers with int32 accumulation: lists the implementations for a device,
 * and appends the steps of the product and of scaling its sums. See qmatmul.h.
 */
#include "ops/quant/qmatmul.h"

#include "ops/lowering/simt_tile.h"
#include "ops/lowering/work.h"
#include "ops/matmul/matmul_shape.h"
#include "ops/pointwise/pointwise.h"
#include "ops/quant/quantize.h"

/* ---- any device: cl/quant/qmatmul.cl --------------------------------------------------------- */

static void plain_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                        const qmatmul_size *z)
{
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, z->n) : 1, rows = z->m >= 4 ? 4 : 1;
    step_builder *b = &c->build;
    step *s = step_kernel(b, impl, "qmatmul", "qmatmul",
                          prelude_text(b,
                                       "P_A=%d P_B=%d P_Y=%d P_VEC=%d P_FP64=0 P_INDEX=32 "
                                       "P_ZERO_A=%d P_ZERO_B=%d P_ROWS=%d P_RANK=%d",
                                       (int)j->a_dtype, (int)j->b_dtype, (int)j->y_dtype, lanes,
                                       j->a_zero.given, j->b_zero.given, rows, z->batches->rank));
    qmatmul_size_args(b, s, z);
    STEP_BUFFERS(b, s, {j->a, j->a_dtype}, {j->b, j->b_dtype}, {j->y, j->y_dtype});
    qmatmul_last_args(c, s, j);
    qmatmul_count_work(s, z);
    const uint64_t across = simd ? 1 : work_power_of_two(z->n, 64),
                   local[3] = {across, simd ? 1 : 64 / across, 1};
    const int64_t pieces[3] = {(z->n + lanes - 1) / lanes, (z->m + rows - 1) / rows,
                               grid_n_elements(z->batches)};
    work_range(c, s, 3, pieces, local);
}

/* Returns an operand that has only the batch dimensions of x, with their strides. */
static lower_operand batches_of(const shape *x)
{
    lower_operand o = {.dims = matmul_leading(x)};
    int64_t stride = x->dims[x->rank - 2] * x->dims[x->rank - 1];
    for (int i = o.dims.rank - 1; i >= 0; i--) {
        o.strides[i] = stride;
        stride *= o.dims.dims[i];
    }
    return o;
}

static clg_status add_gemm(lower_context *c, candidate *impl, const qmatmul_job *j,
                           const qmatmul_impl *by)
{
    const shape a = matmul_as_matrix(&j->a_dims, true), b = matmul_as_matrix(&j->b_dims, false);
    const lower_operand batch_a = batches_of(&a), batch_b = batches_of(&b);
    shape over;
    CLG_TRY(shape_broadcast(&batch_a.dims, &batch_b.dims, &over));
    grid_dims *g = grid_create(c->memory, &over, 2);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    grid_set_operand(g, 0, &batch_a);
    grid_set_operand(g, 1, &batch_b);
    grid_collapse(g);
    const qmatmul_size z = {
        .m = a.dims[a.rank - 2], .n = b.dims[b.rank - 1], .k = a.dims[a.rank - 1], .batches = g};
    if (by->words != DOT_NONE && qgemm_simd_fits(&z))
        qgemm_simd_steps(c, impl, j, &z, by->words);
    else if (by->tiled && qgemm_simt_fits(j, &z))
        qgemm_simt_steps(c, impl, j, &z, by->dot4);
    else
        plain_steps(c, impl, j, &z);
    return CLG_OK;
}

/* Returns the job for the node's inputs, with output 0 as y: int32 sums or requantized bytes. */
static qmatmul_job job_of(const lower_context *c, const qmatmul_inputs *at)
{
    return (qmatmul_job){.a = operand_input(at->a),
                         .b = operand_input(at->b),
                         .y = operand_output(0),
                         .y_scale = operand_input(at->y_scale),
                         .y_zero = operand_input(at->y_zero),
                         .a_dtype = lower_input(c, at->a)->dtype,
                         .b_dtype = lower_input(c, at->b)->dtype,
                         .y_dtype = c->outputs[0].dtype,
                         .a_dims = lower_input(c, at->a)->dims,
                         .b_dims = lower_input(c, at->b)->dims,
                         .b_constant = lower_input(c, at->b)->constant,
                         .a_zero = qmatmul_list(c, at->a_zero),
                         .b_zero = qmatmul_list(c, at->b_zero),
                         .a_scale = qmatmul_list(c, at->a_scale),
                         .b_scale = qmatmul_list(c, at->b_scale)};
}

/* Replaces *at, a scale, by a copy in float32, the dtype that the kernels read, if it has another
 * one. */
static clg_status widen_scale(lower_context *c, candidate *impl, uint32_t input, operand *at)
{
    const lower_operand *given = lower_input(c, input);
    lower_operand widened = *given;
    size_t size_bytes;
    pointwise_register r;
    if (given->dtype == CLG_FLOAT32 || given->dtype == CLG_DTYPE_NONE) return CLG_OK;
    pointwise_group *g = arena_alloc(c->memory, 1, sizeof *g);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!dtype_bytes(CLG_FLOAT32, shape_product(&given->dims, 0, given->dims.rank), &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    if (size_bytes == 0) return CLG_OK;
    widened.dtype = CLG_FLOAT32;
    CLG_TRY(pointwise_add_input(g, given->dtype, &r));
    CLG_TRY(pointwise_add_cast(g, r, CLG_FLOAT32, &r));
    CLG_TRY(pointwise_add_output(g, r));
    const pointwise_binding from = {operand_input(input), given},
                            to = {step_scratch(&c->build, impl, size_bytes), &widened};
    *at = to.where;
    return pointwise_lower(c, impl, g, &from, &to);
}

clg_status qmatmul_append_bytes(lower_context *c, candidate *impl, const qmatmul_inputs *at,
                                const qmatmul_impl *by)
{
    qmatmul_job j = job_of(c, at);
    if (at->result == TO_BYTES) {
        CLG_TRY(widen_scale(c, impl, at->a_scale, &j.a_scale.at));
        CLG_TRY(widen_scale(c, impl, at->b_scale, &j.b_scale.at));
        CLG_TRY(widen_scale(c, impl, at->y_scale, &j.y_scale));
    }
    return add_gemm(c, impl, &j, by);
}

/* ---- GEMMs with float32 results -------------------------------------------------------------- */

/* Adds a scale, zero point or bias as an input of a pointwise group: a scalar, or a list along the
 * last axis. */
static clg_status add_list(pointwise_group *g, pointwise_binding *inputs, lower_operand *what,
                           number_list list, int64_t n, pointwise_register *out)
{
    *what = (lower_operand){.dtype = CLG_FLOAT32, .dense = true};
    if (list.many) what->dims = (shape){.rank = 1, .dims = {n}};
    what->strides[0] = 1;
    inputs[g->n_inputs] = (pointwise_binding){list.at, what};
    return pointwise_add_input(g, CLG_FLOAT32, out);
}

/* Appends y = sums * (a_scale * b_scale) + bias, dense, of `dims`. */
static clg_status scale_sums(lower_context *c, candidate *impl, const qmatmul_job *j,
                             number_list bias, operand y, const shape *dims)
{
    const int64_t n = dims->rank > 0 && j->b_dims.rank > 1 ? dims->dims[dims->rank - 1] : 1;
    lower_operand sums = {.dtype = CLG_INT32, .dims = *dims, .dense = true}, scaled, lists[3];
    pointwise_binding inputs[4] = {{j->y, &sums}};
    pointwise_register r[2], scale[2];
    pointwise_group *g = arena_alloc(c->memory, 1, sizeof *g);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    shape_strides(dims, sums.strides);
    scaled = sums;
    scaled.dtype = CLG_FLOAT32;
    CLG_TRY(pointwise_add_input(g, CLG_INT32, &r[0]));
    CLG_TRY(add_list(g, inputs, &lists[0], j->a_scale, n, &scale[0]));
    CLG_TRY(add_list(g, inputs, &lists[1], j->b_scale, n, &scale[1]));
    if (bias.given) CLG_TRY(add_list(g, inputs, &lists[2], bias, n, &r[1]));
    CLG_TRY(pointwise_add_cast(g, r[0], CLG_FLOAT32, &r[0]));
    CLG_TRY(pointwise_add(g, "Mul", scale, NULL, &scale[0]));
    CLG_TRY(pointwise_add(g, "Mul", (pointwise_register[]){r[0], scale[0]}, NULL, &r[0]));
    if (bias.given) CLG_TRY(pointwise_add(g, "Add", r, NULL, &r[0]));
    CLG_TRY(pointwise_add_output(g, r[0]));
    const pointwise_binding output = {y, &scaled};
    return pointwise_lower(c, impl, g, inputs, &output);
}

clg_status qmatmul_append_float(lower_context *c, candidate *impl, const qmatmul_inputs *at,
                                const qmatmul_impl *by, operand y, const shape *dims)
{
    qmatmul_job j = job_of(c, at);
    size_t size_bytes;
    int64_t n_a;
    if (!dtype_bytes(CLG_INT32, shape_product(dims, 0, dims->rank), &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "needs more memory than can be addressed");
    if (size_bytes == 0) return CLG_OK;
    CLG_TRY(shape_n_elements(&j.a_dims, &n_a));
    if (at->a_scale == QMATMUL_NO_INPUT) {
        const operand quantized = step_scratch(&c->build, impl, (size_t)n_a);
        j.a_scale = (number_list){true, false, step_scratch(&c->build, impl, sizeof(float))};
        j.a_zero = (number_list){true, false, step_scratch(&c->build, impl, 1)};
        quantize_append_dynamic(c, impl, j.a, n_a, quantized, j.a_scale.at, j.a_zero.at);
        j.a = quantized;
        j.a_dtype = CLG_UINT8;
    }
    j.y = step_scratch(&c->build, impl, size_bytes);
    j.y_dtype = CLG_INT32;
    CLG_TRY(add_gemm(c, impl, &j, by));
    return scale_sums(c, impl, &j, qmatmul_list(c, at->bias), y, dims);
}

/* ---- implementations ------------------------------------------------------------------------- */

static void list_words(const lower_context *c, bool fast, qmatmul_impl *out, size_t *n)
{
    static const qmatmul_impl words[] = {{"qgemm_simd_byte", DOT_BYTE, false, 0},
                                         {"qgemm_simd_short", DOT_SHORT, false, 0},
                                         {"qgemm_simd_float", DOT_FLOAT, false, 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (dot_is_fast(c, words[i].words) == fast) out[(*n)++] = words[i];
}

size_t qmatmul_impls(const lower_context *c, qmatmul_impl out_impls[QMATMUL_MAX_IMPLS])
{
    const bool simd = lower_is_simd(c), tiled = !simd && simt_tile_has_groups(c);
    const int dot4 = dot4_best(c);
    size_t n = 0;
    if (simd) list_words(c, true, out_impls, &n);
    if (tiled && dot4 != 0) out_impls[n++] = (qmatmul_impl){"qgemm_dot", DOT_NONE, true, dot4};
    if (tiled) out_impls[n++] = (qmatmul_impl){"qgemm_simt", DOT_NONE, true, 0};
    out_impls[n++] = (qmatmul_impl){.name = "qmatmul"};
    if (simd) list_words(c, false, out_impls, &n);
    return n;
}
