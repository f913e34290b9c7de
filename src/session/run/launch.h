/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns steps into OpenCL calls: sets kernel arguments and enqueues steps, given the memory of
 * their operands.
 */
#ifndef CLG_SESSION_LAUNCH_H
#define CLG_SESSION_LAUNCH_H

#include "session/context.h"
#include "session/run/launch_part.h"

/* The memory of an operand, in the order of plan_step.buffers. */
typedef struct bound_buffer {
    ocl_buffer *buffer; /* borrowed */
    int64_t offset_bytes;
    uint64_t stamp; /* frame_memory.stamp when it was set; compared to detect changes */
} bound_buffer;

/* Where kernels report faults, and that they have begun. */
typedef struct launch_reports {
    ocl_buffer *fault; /* borrowed; NULL only for steps that cannot report faults, and for drafts */
    int32_t node;      /* reported with a fault */
    /* Borrowed; NULL: not reported. BEGUN_WORDS ints, first 0 and the number of the step that began
     * last. Only kernels with packed arguments report it (launch_reports_begin). */
    ocl_buffer *begun;
    int32_t step; /* from 1 on: the number of the step */
} launch_reports;

#define BEGUN_WORDS 32 /* two are used; no other data may be on their cache line */

/* Returns whether the step reports that it has begun. */
static inline bool launch_reports_begin(const step *s)
{
    return s->kind == STEP_KERNEL && s->kernel.packed != NULL;
}

/* Sets the arguments of a kernel step. */
clg_status launch_set_args(ocl_kernel *k, const step *s, const bound_buffer *buffers,
                           const launch_reports *reports);
/* Sets the random key of the next launch of a step that draws random numbers; `number` must be
 * unique to the launch. */
clg_status launch_set_key(ocl_kernel *k, const step *s, uint64_t number);
/* Returns the call of CLBlast for a STEP_BLAS_GEMM. */
ocl_gemm launch_gemm(const step *s, const bound_buffer *buffers);
/* Enqueues a part of a step. k: its kernel (for one of several parts, that of launch_part_ref);
 * NULL for other kinds of steps. */
clg_status launch_step(ocl_queue *q, const step *s, ocl_kernel *k, const bound_buffer *buffers,
                       launch_part part);

/* Callback that sets to->buffer, borrowed, for operand o of a step. to->offset_bytes is initially
 * the step's offset, and may be changed. */
typedef clg_status (*launch_operand)(void *self, const operand *o, bound_buffer *to);
/* Enqueues a step on the context's utility queue, outside of plans and frames, with operands from
 * `resolve`. fault may be NULL for steps that cannot report faults. */
clg_status launch_once(device_context *context, const step *s, launch_operand resolve, void *self,
                       ocl_buffer *fault);

/* Creates an unbuilt kernel for the step, with its arguments set; the buffers need only have sizes
 * (ocl_buffer_create_draft). */
clg_status launch_draft(device_context *context, const step *s, launch_operand resolve, void *self,
                        ocl_kernel **out_kernel);

/* A fault word: node number and the kernel's fault code, as launch_set_args composes it. */
#define FAULT_CODE(node, kernel_code) ((int32_t)(((node) << 8) | ((kernel_code)&0xff)))
#define FAULT_NODE(code) ((int32_t)(code) >> 8)
#define FAULT_KERNEL_CODE(code) ((code)&0xff)
#define FAULT_WORDS 4 /* fault word, offending value, two unused */

#endif
