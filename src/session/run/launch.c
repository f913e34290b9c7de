/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets kernel arguments and enqueues steps (kernel launches, GEMMs by CLBlast, copies, fills);
 * launches single steps outside of plans.
 */
#include "session/run/launch.h"

#include "base/hash.h"

#include <string.h>

/* Passes a step's arguments: one by one to the kernel; or, for a kernel with packed arguments
 * (kernel_ref.packed), collects the scalars, which pass_last passes as one argument. The kernel
 * itself skips those that it has. */
typedef struct passing {
    ocl_kernel *kernel;
    bool packed;
    uint32_t index, n;
    int64_t scalars[2 * STEP_MAX_ARGS + 1];
} passing;

static clg_status pass_buffer(passing *p, ocl_buffer *b)
{
    return ocl_kernel_set_buffer(p->kernel, p->index++, b);
}

/* Passes a scalar: `data` in the size that the kernel declares or, if packed, as 64 bits (wide). */
static clg_status pass_number(passing *p, size_t size_bytes, const void *data, int64_t wide)
{
    if (!p->packed) return ocl_kernel_set_bytes(p->kernel, p->index++, size_bytes, data);
    p->scalars[p->n++] = wide;
    return CLG_OK;
}

static clg_status pass_int(passing *p, int32_t value)
{
    return pass_number(p, sizeof value, &value, value);
}

static clg_status pass_long(passing *p, int64_t value)
{
    return pass_number(p, sizeof value, &value, value);
}

static clg_status pass_float(passing *p, float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return pass_number(p, sizeof value, &value, bits);
}

static clg_status pass_last(passing *p, const launch_reports *reports)
{
    if (!p->packed) return CLG_OK;
    CLG_TRY(pass_buffer(p, reports->begun));
    p->scalars[p->n++] = reports->step;
    return ocl_kernel_set_bytes(p->kernel, p->index, p->n * sizeof *p->scalars, p->scalars);
}

clg_status launch_set_args(ocl_kernel *k, const step *s, const bound_buffer *buffers,
                           const launch_reports *reports)
{
    passing p = {.kernel = k, .packed = s->kernel.packed != NULL};
    const uint64_t no_key = 0;
    for (uint32_t i = 0; i < s->n_args; i++) {
        const step_arg *a = &s->args[i];
        switch (a->kind) {
        case ARG_BUFFER:
            CLG_TRY(pass_buffer(&p, buffers->buffer));
            CLG_TRY(pass_long(&p, buffers->offset_bytes / (int64_t)dtype_size(a->dtype)));
            buffers++;
            break;
        case ARG_FAULT:
            CLG_TRY(pass_buffer(&p, reports->fault));
            CLG_TRY(pass_int(&p, FAULT_CODE(reports->node, a->as.i)));
            break;
        case ARG_INT: CLG_TRY(pass_int(&p, a->as.i)); break;
        case ARG_LONG: CLG_TRY(pass_long(&p, a->as.l)); break;
        case ARG_FLOAT: CLG_TRY(pass_float(&p, a->as.f)); break;
        case ARG_LOCAL: /* never packed */
            CLG_TRY(ocl_kernel_set_bytes(k, p.index++, a->as.bytes, NULL));
            break;
        case ARG_KEY: /* set before each launch by launch_set_key; never packed */
            CLG_TRY(ocl_kernel_set_bytes(k, p.index++, sizeof no_key, &no_key));
            break;
        }
    }
    return pass_last(&p, reports);
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

ocl_gemm launch_gemm(const step *s, const bound_buffer *b)
{
    const int64_t unit = (int64_t)sizeof(float);
    ocl_gemm g = ocl_gemm_of(&s->gemm);
    g.a = b[0].buffer;
    g.b = b[1].buffer;
    g.c = b[2].buffer;
    g.offset_a = b[0].offset_bytes / unit;
    g.offset_b = b[1].offset_bytes / unit;
    g.offset_c = b[2].offset_bytes / unit;
    return g;
}

static clg_status launch_kernel(ocl_queue *q, const step *s, ocl_kernel *k, launch_part part)
{
    launch_range r;
    if (part.count == 1) return ocl_queue_launch(q, k, s->n_dims, s->global, s->local);
    launch_part_range(s, part, &r);
    return ocl_queue_launch_at(q, k, r.n_dims, r.offset, r.global, r.local);
}

static clg_status call_gemm(ocl_queue *q, const step *s, const bound_buffer *buffers,
                            launch_part part)
{
    ocl_gemm g = launch_gemm(s, buffers);
    launch_part_gemm(part, &g);
    return ocl_queue_gemm(q, &g);
}

clg_status launch_step(ocl_queue *q, const step *s, ocl_kernel *k, const bound_buffer *buffers,
                       launch_part part)
{
    const part_range bytes = launch_part_bytes(s, part);
    const size_t first = (size_t)bytes.first, n = (size_t)bytes.count;
    switch (s->kind) {
    case STEP_KERNEL: return launch_kernel(q, s, k, part);
    case STEP_BLAS_GEMM: return call_gemm(q, s, buffers, part);
    case STEP_COPY:
        return ocl_queue_copy(q, buffers[0].buffer, (size_t)buffers[0].offset_bytes + first,
                              buffers[1].buffer, (size_t)buffers[1].offset_bytes + first, n);
    case STEP_FILL:
        return ocl_queue_fill(q, buffers[0].buffer, (size_t)buffers[0].offset_bytes + first, n,
                              s->pattern, s->pattern_bytes);
    }
    return error_set(CLG_ERROR_INTERNAL, "a step of unknown kind %d", (int)s->kind);
}

/* ---- without a plan -------------------------------------------------------------------------- */

/* The buffers of a step's operands, found by `resolve`. */
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

/* Creates a kernel and sets its arguments. It is built only if its program is in memory or in the
 * cache. */
static clg_status make_draft(device_context *context, const step *s, const bound_buffer *buffers,
                             ocl_buffer *fault, ocl_kernel **out_kernel)
{
    CLG_TRY(ocl_kernel_create_draft(context->ocl, &s->kernel, out_kernel));
    const clg_status status =
        launch_set_args(*out_kernel, s, buffers, &(launch_reports){.fault = fault});
    if (status == CLG_OK) return CLG_OK;
    ocl_kernel_free(*out_kernel);
    *out_kernel = NULL;
    return status;
}

clg_status launch_draft(device_context *context, const step *s, launch_operand resolve, void *self,
                        ocl_kernel **out_kernel)
{
    binding b = {.resolve = resolve, .self = self};
    *out_kernel = NULL;
    CLG_TRY(bind_all(&b, s));
    return make_draft(context, s, b.buffers, NULL, out_kernel);
}

/* Creates and compiles a kernel for a single launch. After a failure *out_kernel may be set; the
 * caller frees it. */
static clg_status make_kernel(device_context *context, const step *s, const bound_buffer *buffers,
                              ocl_buffer *fault, ocl_kernel **out_kernel)
{
    CLG_TRY(make_draft(context, s, buffers, fault, out_kernel));
    const ocl_launch launch = {
        .kernel = *out_kernel, .n_dims = s->n_dims, .global = s->global, .local = s->local};
    return ocl_launches_prepare(context->ocl, &launch, 1, NULL, NULL);
}

/* Has CLBlast's kernels for a call compiled, which may take long: before taking the lock under
 * which the step is enqueued. */
static clg_status try_gemm(device_context *context, const step *s, const bound_buffer *buffers)
{
    const ocl_launch launch = {.gemm = launch_gemm(s, buffers)};
    return ocl_launches_prepare(context->ocl, &launch, 1, NULL, NULL);
}

clg_status launch_once(device_context *context, const step *s, launch_operand resolve, void *self,
                       ocl_buffer *fault)
{
    binding b = {.resolve = resolve, .self = self};
    ocl_kernel *k = NULL;
    CLG_TRY(bind_all(&b, s));
    clg_status status =
        s->kind == STEP_KERNEL ? make_kernel(context, s, b.buffers, fault, &k) : CLG_OK;
    if (s->kind == STEP_BLAS_GEMM) status = try_gemm(context, s, b.buffers);
    mutex_lock(&context->utility_lock);
    if (status == CLG_OK) status = launch_step(context->utility, s, k, b.buffers, LAUNCH_WHOLE);
    mutex_unlock(&context->utility_lock);
    ocl_kernel_free(k);
    return status;
}
