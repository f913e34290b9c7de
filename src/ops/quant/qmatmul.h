/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of 8-bit matrices for operators of which one is a part.
 */
#ifndef CLG_OPS_QMATMUL_H
#define CLG_OPS_QMATMUL_H

#include "ops/lowering/dot.h"
#include "ops/lowering/grid.h"

/* In qmatmul_inputs: computed at run time. */
#define QMATMUL_NO_INPUT 99

typedef enum qmatmul_result { TO_SUMS, TO_BYTES, TO_FLOAT } qmatmul_result;

/* Indices of the inputs of an operator. */
typedef struct qmatmul_inputs {
    uint32_t a, b, a_zero, b_zero, a_scale, b_scale, y_scale, y_zero, bias;
    qmatmul_result result;
} qmatmul_inputs;

/* How a GEMM is computed: by words of the SIMD class's kernel, tiled for GPUs, or, where it
 * is neither, by the kernel that all devices have. All give the same bits. */
typedef struct qmatmul_impl {
    const char *name; /* of the candidate */
    dot_unit words;
    bool tiled;
    int dot4; /* P_DOT of the tiled kernel */
} qmatmul_impl;

#define QMATMUL_MAX_IMPLS 4
/* The implementations for this device and class, the best first. */
size_t qmatmul_impls(const lower_context *c, qmatmul_impl out_impls[QMATMUL_MAX_IMPLS]);

/* Scales and zero points of A [m, k] and B [k, n], and the bias, are one number or as many as
 * there are rows or columns; unknown dimensions fit. */
clg_status qmatmul_check_lists(op_context *c, const qmatmul_inputs *at, int64_t m, int64_t n);
/* Appends y = (a - a_zero) x (b - b_zero) * (a_scale * b_scale) + bias in float32; y is dense,
 * of these dims. */
clg_status qmatmul_append_float(lower_context *c, candidate *impl, const qmatmul_inputs *at,
                                const qmatmul_impl *by, operand y, const shape *dims);

/* Appends the product of the node's inputs, as sums or bytes, in output 0. */
clg_status qmatmul_append_bytes(lower_context *c, candidate *impl, const qmatmul_inputs *at,
                                const qmatmul_impl *by);

/* ---- what kernels share ---------------------------------------------------------------------- */

/* One number, or a list of them; or none. */
typedef struct number_list {
    bool given, many;
    operand at;
} number_list;

/* y = (a - a_zero) x (b - b_zero), as sums in int32; or, of 8 bits, times a_scale * b_scale /
 * y_scale. */
typedef struct qmatmul_job {
    operand a, b, y, y_scale, y_zero;
    clg_dtype a_dtype, b_dtype, y_dtype;
    shape a_dims, b_dims;
    bool b_constant; /* an input that may be packed once */
    number_list a_zero, b_zero, a_scale, b_scale;
} qmatmul_job;

/* The scale or zero point in this input of the node. */
number_list qmatmul_list(const lower_context *c, uint32_t input);

/* Its sizes, and in batches how A and B (operands 0 and 1) walk them. */
typedef struct qmatmul_size {
    int64_t m, n, k;
    const grid_dims *batches;
} qmatmul_size;

/* Arguments: sizes and batches; and, at the end, QMATMUL_ARGS_LAST of cl/quant/qmatmul.clh. */
void qmatmul_size_args(step_builder *b, step *s, const qmatmul_size *z);
void qmatmul_last_args(lower_context *c, step *s, const qmatmul_job *j);
void qmatmul_count_work(step *s, const qmatmul_size *z);

/* Whether cl/quant/qgemm_simd.cl can do it, and its steps. */
bool qgemm_simd_fits(const qmatmul_size *z);
void qgemm_simd_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                      const qmatmul_size *z, dot_unit unit);

/* The same of cl/quant/qgemm_simt.cl. */
bool qgemm_simt_fits(const qmatmul_job *j, const qmatmul_size *z);
void qgemm_simt_steps(lower_context *c, candidate *impl, const qmatmul_job *j,
                      const qmatmul_size *z, int dot4);

#endif
