/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMMs of 8-bit integers with int32 accumulation, for MatMulInteger, QLinearMatMul and fused
 * operators.
 */
#ifndef CLG_OPS_QMATMUL_H
#define CLG_OPS_QMATMUL_H

#include "ops/lowering/dot.h"
#include "ops/lowering/grid.h"

/* Index of a scale or zero point that is computed at run time instead of being an input of the
 * node. */
#define QMATMUL_NO_INPUT 99

typedef enum qmatmul_result { TO_SUMS, TO_BYTES, TO_FLOAT } qmatmul_result;

/* The dtype of the result (int32 sums, requantized bytes, or float32), and the indices of an
 * operator's inputs; those that this kind of result does not use are 0. */
typedef struct qmatmul_inputs {
    uint32_t a, b, a_zero, b_zero, a_scale, b_scale, y_scale, y_zero, bias;
    qmatmul_result result;
} qmatmul_inputs;

/* An implementation of the product; the results of all are bit-identical. Its kernel is in
 *   qgemm_simd.cl, for CPUs, if `words`, a kind of dot product, is not DOT_NONE
 *   qgemm_simt.cl, for GPUs, if `tiled`
 *   qmatmul.cl, for any device, otherwise */
typedef struct qmatmul_impl {
    const char *name; /* of the candidate */
    dot_unit words;
    bool tiled;
    int dot4; /* P_DOT of qgemm_simt.cl: its dot-product instruction */
} qmatmul_impl;

#define QMATMUL_MAX_IMPLS 4
/* Writes the implementations for the device and kernel class of the context to out_impls, the
 * preferred one first. Returns their number. */
size_t qmatmul_impls(const lower_context *c, qmatmul_impl out_impls[QMATMUL_MAX_IMPLS]);

/* Checks that scales and zero points of A [m, k] and B [k, n] are scalars or have one value per row
 * of A or column of B, and that the bias has one per column. Unknown dimensions are accepted. */
clg_status qmatmul_check_lists(op_context *c, const qmatmul_inputs *at, int64_t m, int64_t n);
/* Appends y = (a - a_zero) x (b - b_zero) * (a_scale * b_scale) + bias in float32. y is dense, of
 * shape `dims`. */
clg_status qmatmul_append_float(lower_context *c, candidate *impl, const qmatmul_inputs *at,
                                const qmatmul_impl *by, operand y, const shape *dims);

/* Appends the product of the node's inputs to output 0, as int32 sums or requantized bytes. */
clg_status qmatmul_append_bytes(lower_context *c, candidate *impl, const qmatmul_inputs *at,
                                const qmatmul_impl *by);

/* ---- shared by the kernels ------------------------------------------------------------------- */

/* A scale or zero point: absent (not given), a scalar (given), or one value per row of A or column
 * of B (given and many). */
typedef struct number_list {
    bool given, many;
    operand at;
} number_list;

/* The product y = (a - a_zero) x (b - b_zero). y is either the int32 sums or, with an 8-bit
 * y_dtype, sums * a_scale * b_scale / y_scale + y_zero. */
typedef struct qmatmul_job {
    operand a, b, y, y_scale, y_zero;
    clg_dtype a_dtype, b_dtype, y_dtype;
    shape a_dims, b_dims;
    bool b_constant; /* B is a constant input, which may be packed once, before the first run */
    number_list a_zero, b_zero, a_scale, b_scale;
} qmatmul_job;

/* Returns the scale or zero point that is this input of the node, an absent one if the node does
 * not have the input. */
number_list qmatmul_list(const lower_context *c, uint32_t input);

/* Sizes of the product: A [m, k], B [k, n]. batches: the batch dimensions, with the strides of A
 * (operand 0) and B (operand 1). */
typedef struct qmatmul_size {
    int64_t m, n, k;
    const grid_dims *batches;
} qmatmul_size;

/* qmatmul_size_args adds the sizes and batch dimensions as arguments; qmatmul_last_args adds the
 * last arguments, QMATMUL_ARGS_LAST of cl/quant/qmatmul.clh; qmatmul_count_work sets the step's
 * flops and bytes. */
void qmatmul_size_args(step_builder *b, step *s, const qmatmul_size *z);
void qmatmul_last_args(lower_context *c, step *s, const qmatmul_job *j);
void qmatmul_count_work(step *s, const qmatmul_size *z);

/* cl/quant/qgemm_simd.cl: qgemm_simd_fits returns whether it supports the sizes, qgemm_simd_steps
 * appends its steps. */
bool qgemm_simd_fits(const qmatmul_size *z);
void qgemm_simd_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                      const qmatmul_size *z, dot_unit unit);

/* cl/quant/qgemm_simt.cl: qgemm_simt_fits returns whether it supports the job, qgemm_simt_steps
 * appends its steps. */
bool qgemm_simt_fits(const qmatmul_job *j, const qmatmul_size *z);
void qgemm_simt_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                      const qmatmul_size *z, int dot4);

#endif
