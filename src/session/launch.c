/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding arguments and enqueuing steps.
 */
#include "session/launch.h"

#include "base/hash.h"

static clg_status set_scalar(ocl_kernel *k, uint32_t index, const step_arg *a)
{
    switch (a->kind) {
    case ARG_INT: return ocl_kernel_set_bytes(k, index, sizeof a->as.i, &a->as.i);
    case ARG_LONG: return ocl_kernel_set_bytes(k, index, sizeof a->as.l, &a->as.l);
    case ARG_FLOAT: return ocl_kernel_set_bytes(k, index, sizeof a->as.f, &a->as.f);
    default: return ocl_kernel_set_bytes(k, index, a->as.bytes, NULL);
    }
}

static clg_status set_buffer(ocl_kernel *k, uint32_t index, const step_arg *a,
                             const bound_buffer *b)
{
    int64_t offset_elems = b->offset_bytes / (int64_t)dtype_size(a->dtype);
    CLG_TRY(ocl_kernel_set_buffer(k, index, b->buffer));
    return ocl_kernel_set_bytes(k, index + 1, sizeof offset_elems, &offset_elems);
}

clg_status launch_set_args(ocl_kernel *k, const step *s, const bound_buffer *buffers,
                           const bound_buffer *previous, ocl_buffer *fault, int32_t fault_node)
{
    uint32_t index = 0, n_buffers = 0;
    for (uint32_t i = 0; i < s->n_args; i++) {
        const step_arg *a = &s->args[i];
        if (a->kind == ARG_BUFFER) {
            if (!previous || previous[n_buffers].stamp != buffers[n_buffers].stamp)
                CLG_TRY(set_buffer(k, index, a, &buffers[n_buffers]));
            n_buffers++;
            index += 2;
        } else if (a->kind == ARG_FAULT) {
            if (!previous) {
                int32_t code = FAULT_CODE(fault_node, a->as.i);
                CLG_TRY(ocl_kernel_set_buffer(k, index, fault));
                CLG_TRY(ocl_kernel_set_bytes(k, index + 1, sizeof code, &code));
            }
            index += 2;
        } else {
            if (!previous && a->kind != ARG_KEY) CLG_TRY(set_scalar(k, index, a));
            index++;
        }
    }
    return CLG_OK;
}

clg_status launch_set_key(ocl_kernel *k, const step *s, uint64_t number)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < s->n_args; i++) {
        const step_arg *a = &s->args[i];
        if (a->kind == ARG_KEY) {
            const uint64_t key = hash_bytes(&a->as.l, sizeof a->as.l, number);
            CLG_TRY(ocl_kernel_set_bytes(k, index, sizeof key, &key));
        }
        index += a->kind == ARG_BUFFER || a->kind == ARG_FAULT ? 2 : 1;
    }
    return CLG_OK;
}

static clg_status launch_gemm(ocl_queue *q, const gemm_problem *p, const bound_buffer *b)
{
    const int64_t unit = (int64_t)sizeof(float);
    ocl_gemm g = ocl_gemm_of(p);
    g.a = b[0].buffer;
    g.b = b[1].buffer;
    g.c = b[2].buffer;
    g.offset_a = b[0].offset_bytes / unit;
    g.offset_b = b[1].offset_bytes / unit;
    g.offset_c = b[2].offset_bytes / unit;
    return ocl_queue_gemm(q, &g);
}

clg_status launch_step(ocl_queue *q, const step *s, ocl_kernel *k, const bound_buffer *buffers)
{
    switch (s->kind) {
    case STEP_KERNEL: return ocl_queue_launch(q, k, s->n_dims, s->global, s->local);
    case STEP_BLAS_GEMM: return launch_gemm(q, &s->gemm, buffers);
    case STEP_COPY:
        return ocl_queue_copy(q, buffers[0].buffer, (size_t)buffers[0].offset_bytes,
                              buffers[1].buffer, (size_t)buffers[1].offset_bytes, s->size_bytes);
    case STEP_FILL:
        return ocl_queue_fill(q, buffers[0].buffer, (size_t)buffers[0].offset_bytes, s->size_bytes,
                              s->pattern, s->pattern_bytes);
    }
    return error_set(CLG_ERROR_INTERNAL, "a step of unknown kind %d", (int)s->kind);
}

/* ---- without a plan ---------------------------------------------------------------------------------------- */

typedef struct binding {
    launch_operand resolve;
    void *self;
    bound_buffer buffers[STEP_MAX_ARGS];
    uint32_t n;
} binding;

static clg_status bind(binding *b, const operand *o, size_t unit_bytes)
{
    bound_buffer *to = &b->buffers[b->n++];
    *to = (bound_buffer){.offset_bytes = o->offset_elems * (int64_t)unit_bytes};
    return b->resolve(b->self, o, to);
}

static clg_status bind_all(binding *b, const step *s)
{
    for (uint32_t i = 0; s->kind == STEP_KERNEL && i < s->n_args; i++)
        if (s->args[i].kind == ARG_BUFFER)
            CLG_TRY(bind(b, &s->args[i].buffer, dtype_size(s->args[i].dtype)));
    if (s->kind == STEP_BLAS_GEMM) {
        CLG_TRY(bind(b, &s->gemm.a, sizeof(float)));
        CLG_TRY(bind(b, &s->gemm.b, sizeof(float)));
        CLG_TRY(bind(b, &s->gemm.c, sizeof(float)));
    }
    if (s->kind == STEP_COPY) CLG_TRY(bind(b, &s->from, 1));
    if (s->kind == STEP_COPY || s->kind == STEP_FILL) CLG_TRY(bind(b, &s->to, 1));
    return CLG_OK;
}

clg_status launch_once(clg_context *c, const step *s, launch_operand resolve, void *self,
                       ocl_buffer *fault)
{
    binding b = {.resolve = resolve, .self = self};
    ocl_kernel *k = NULL;
    CLG_TRY(bind_all(&b, s));
    clg_status status = CLG_OK;
    if (s->kind == STEP_KERNEL) {
        CLG_TRY(ocl_kernel_create(c->ocl, &s->kernel, &k));
        status = launch_set_args(k, s, b.buffers, NULL, fault, 0);
        if (status == CLG_OK && s->draws) status = launch_set_key(k, s, 0);
    }
    mutex_lock(&c->utility_lock);
    if (status == CLG_OK) status = launch_step(c->utility, s, k, b.buffers);
    mutex_unlock(&c->utility_lock);
    ocl_kernel_free(k);
    return status;
}
