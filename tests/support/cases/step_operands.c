/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements step_operands.h: lists the operands of kernel, GEMM, copy and fill steps.
 */
#include "support/cases/step_operands.h"

#include "support/fakes/shadow_memory.h"
#include "support/unit.h"

bool step_is_skipped(const step *s)
{
    if (s->kind == STEP_COPY || s->kind == STEP_FILL) return s->size_bytes == 0;
    for (uint32_t d = 0; s->kind == STEP_KERNEL && d < s->n_dims; d++)
        if (s->global[d] == 0) return true;
    return false;
}

/* Lists the operands, and for each the size in bytes of the unit of its offset_elems. Returns their
 * number. */
static uint32_t list_operands(const step *s, operand *out, size_t *out_units)
{
    uint32_t n = 0;
    for (uint32_t i = 0; s->kind == STEP_KERNEL && i < s->n_args; i++)
        if (s->args[i].kind == ARG_BUFFER) {
            out_units[n] = dtype_size(s->args[i].dtype);
            out[n++] = s->args[i].buffer;
        }
    if (s->kind == STEP_BLAS_GEMM) {
        const operand abc[3] = {s->gemm.a, s->gemm.b, s->gemm.c};
        for (; n < 3; n++) {
            out_units[n] = sizeof(float);
            out[n] = abc[n];
        }
    }
    if (s->kind == STEP_COPY) {
        out_units[n] = 1;
        out[n++] = s->from;
    }
    if (s->kind == STEP_COPY || s->kind == STEP_FILL) {
        out_units[n] = 1;
        out[n++] = s->to;
    }
    return n;
}

void step_operands_of(const step *s, const plan_step *planned, step_operands *out)
{
    size_t units[STEP_MAX_ARGS];
    out->n = list_operands(s, out->list, units);
    assert_true(out->n <= planned->n_buffers);
    for (uint32_t i = 0; i < out->n; i++)
        out->at[i] =
            placement_moved(planned->buffers[i], -out->list[i].offset_elems * (int64_t)units[i]);
}

size_t step_input_read(const step *s)
{
    operand list[STEP_MAX_ARGS];
    size_t units[STEP_MAX_ARGS];
    const uint32_t n = list_operands(s, list, units);
    for (uint32_t i = 0; i < n; i++)
        if (list[i].space == OPERAND_INPUT) return list[i].index;
    return SIZE_MAX;
}
