/* SPDX-License-Identifier: Apache-2.0
 *
 * From a step and the memory of its operands to the queue: the one place where plain data becomes
 * OpenCL calls.
 */
#ifndef CLG_SESSION_LAUNCH_H
#define CLG_SESSION_LAUNCH_H

#include "session/context.h"

/* An operand in memory, in the order of plan_step.buffers. */
typedef struct bound_buffer {
    ocl_buffer *buffer; /* borrowed */
    int64_t offset_bytes;
    uint64_t stamp; /* of the frame's memory it was set from; see frame.c */
} bound_buffer;

/* Sets the arguments of a kernel step. previous: what was set before, or NULL: then all
 * arguments are set. */
clg_status launch_set_args(ocl_kernel *k, const step *s, const bound_buffer *buffers,
                           const bound_buffer *previous, ocl_buffer *fault, int32_t fault_node);
/* Sets what a step that draws random numbers takes as its key in the next launch, from a number
 * that no other has. */
clg_status launch_set_key(ocl_kernel *k, const step *s, uint64_t number);
/* A STEP_BLAS_GEMM as a call of CLBlast. */
ocl_gemm launch_gemm(const step *s, const bound_buffer *buffers);
/* Enqueues a step; k is NULL but for kernel steps. */
clg_status launch_step(ocl_queue *q, const step *s, ocl_kernel *k, const bound_buffer *buffers);

/* Fills in the memory of a step's operand, borrowed; its offset is as the step has it, and may
 * be moved. */
typedef clg_status (*launch_operand)(void *self, const operand *o, bound_buffer *to);
/* Enqueues a step on the context's utility queue, outside of plans and frames. fault may be NULL
 * for steps that cannot meet bad data. */
clg_status launch_once(clg_context *context, const step *s, launch_operand resolve, void *self,
                       ocl_buffer *fault);

/* A kernel for the step, not built, with its arguments set; the buffers need only have sizes
 * (ocl_buffer_create_draft). */
clg_status launch_draft(clg_context *context, const step *s, launch_operand resolve, void *self,
                        ocl_kernel **out_kernel);

/* A fault word: code as launch_set_args composes it. */
#define FAULT_CODE(node, kernel_code) ((int32_t)(((node) << 8) | ((kernel_code)&0xff)))
#define FAULT_NODE(code) ((int32_t)(code) >> 8)
#define FAULT_KERNEL_CODE(code) ((code)&0xff)
#define FAULT_WORDS 4 /* code, offending number, spare */

#endif
