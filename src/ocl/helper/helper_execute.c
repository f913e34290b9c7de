/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes requests in the compile helper: builds a program and launches its kernel, or computes a
 * GEMM with CLBlast.
 */
#include "ocl/helper/helper_execute.h"

#include "base/memory.h"
#include "ocl/blas/blas.h"
#include "ocl/program_build.h"
#include "ocl/queue/queue.h"

#include <string.h>

/* Memory limit of a trial on a GPU; if the request needs more, only the build is tested. */
#define GPU_MAX_BYTES ((size_t)256 << 20)
/* On CPU devices, buffers above this size are fresh pages (see mallopt in helper/child_posix.c):
 * they are zeros already, and writing them would make them resident. */
#define CPU_CLEAR_BYTES ((size_t)1 << 20)
/* Global size of a dimension from which on PoCL compiles a kernel a second time. */
#define WIDE_ITEMS 65536u

static clg_status try_device(size_t index, hash128 identity, ocl_context **out_context)
{
    const ocl_context_options options = {.cache_dir = "", .bare = true};
    CLG_TRY(ocl_context_create(index, &options, out_context));
    if (hash128_equal((*out_context)->identity, identity)) return CLG_OK;
    ocl_context_free(*out_context);
    *out_context = NULL;
    return error_set(CLG_ERROR_NO_DEVICE, "the compile helper finds another device");
}

clg_status helper_open_device(const helper_hello *hello, helper_device *out_device)
{
    device_record *records;
    device_caps *caps;
    size_t n;
    *out_device = (helper_device){0};
    CLG_TRY(ocl_enumerate(&records, &caps, &n));
    device_caps_free(caps, n);
    device_records_free(records, n);
    clg_status status = CLG_ERROR_NO_DEVICE;
    if (hello->device_index < n)
        status = try_device((size_t)hello->device_index, hello->identity, &out_device->context);
    for (size_t i = 0; i < n && status == CLG_ERROR_NO_DEVICE; i++)
        if (i != hello->device_index) status = try_device(i, hello->identity, &out_device->context);
    return status;
}

/* The OpenCL objects of a request. */
typedef struct trial {
    helper_device *device;
    ocl_context *ocl;
    const helper_request *request;
    cl_program program; /* owned by the device */
    cl_kernel kernel;
    ocl_queue *queue;
    /* one per kernel argument, NULL if it is not a buffer; or the operands of a GEMM */
    ocl_buffer **buffers;
    size_t n_buffers;
} trial;

static void clear(trial *t)
{
    ocl_queue_free(t->queue); /* waits */
    if (t->kernel) (void)cl.ReleaseKernel(t->kernel);
    for (size_t i = 0; i < t->n_buffers; i++) ocl_buffer_free(t->buffers[i]);
    memory_free(t->buffers);
}

static clg_status begin_launch(trial *t, size_t n_buffers)
{
    t->buffers = memory_zalloc(n_buffers + 1, sizeof *t->buffers);
    if (!t->buffers) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    t->n_buffers = n_buffers;
    return ocl_queue_create_own(t->ocl, &t->queue);
}

static bool is_on_cpu(const ocl_context *ocl) { return context_caps(ocl)->kind == CLG_DEVICE_CPU; }

static bool may_launch(const trial *t)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < t->request->args.count; i++) {
        const kernel_arg *arg = &t->request->args.items[i];
        if (arg->kind == KERNEL_ARG_UNSET) return false;
        if (arg->kind == KERNEL_ARG_BUFFER) n_bytes += arg->size_bytes;
    }
    return t->request->has_launch && (is_on_cpu(t->ocl) || n_bytes <= GPU_MAX_BYTES);
}

/* Returns the buffer of the first earlier argument that has this argument's identity; NULL when
 * there is none. */
static ocl_buffer *find_same(const trial *t, size_t index)
{
    const kernel_arg *items = t->request->args.items;
    for (size_t i = 0; i < index; i++)
        if (t->buffers[i] && items[i].buffer == items[index].buffer) return t->buffers[i];
    return NULL;
}

/* Fills a new buffer with zeros, unless its pages are zeros already. */
static clg_status clear_buffer(trial *t, ocl_buffer *b)
{
    static const char zero;
    const size_t n_bytes = ocl_buffer_size(b);
    if (is_on_cpu(t->ocl) && n_bytes > CPU_CLEAR_BYTES) return CLG_OK;
    return ocl_queue_fill(t->queue, b, 0, n_bytes, &zero, sizeof zero);
}

static clg_status make_buffer(trial *t, size_t index)
{
    const kernel_arg *arg = &t->request->args.items[index];
    ocl_buffer **out = &t->buffers[index], *same = find_same(t, index);
    if (same) {
        *out = ocl_buffer_retain(same);
        return CLG_OK;
    }
    CLG_TRY(ocl_buffer_create(t->ocl, arg->size_bytes, OCL_BUFFER_DEVICE, out));
    if (arg->has_content)
        return ocl_queue_write(t->queue, *out, 0, t->request->args.bytes + arg->at, arg->size_bytes,
                               true);
    return clear_buffer(t, *out);
}

static clg_status set_arg(trial *t, size_t index)
{
    const kernel_arg *arg = &t->request->args.items[index];
    const void *value = NULL;
    size_t n_bytes = arg->size_bytes;
    cl_mem memory;
    if (arg->kind == KERNEL_ARG_BUFFER) {
        CLG_TRY(make_buffer(t, index));
        memory = ocl_buffer_handle(t->buffers[index]);
        value = &memory;
        n_bytes = sizeof memory;
    } else if (arg->kind == KERNEL_ARG_VALUE) {
        value = t->request->args.bytes + arg->at;
    }
    CL_TRY(t->ocl, SetKernelArg, (t->kernel, (cl_uint)index, n_bytes, value));
    return CLG_OK;
}

/* Chooses the NDRange of a trial: one work-group, or the whole NDRange of the request if it has no
 * local size. Where the driver recompiles for large NDRanges, the smallest NDRange that has it
 * compile the same code as the request's. */
static void choose_range(const trial *t, size_t global[3], size_t local[3])
{
    const helper_launch *l = &t->request->launch;
    for (uint32_t i = 0; i < 3; i++) {
        local[i] = l->has_local && l->local[i] ? (size_t)l->local[i] : 1;
        global[i] = l->has_local ? local[i] : (size_t)l->global[i];
        if (i < l->n_dims && l->has_local && l->global[i] >= WIDE_ITEMS &&
            context_has_quirk(t->ocl, QUIRK_GLOBAL_SIZE_RECOMPILES))
            global[i] = (WIDE_ITEMS + local[i] - 1) / local[i] * local[i];
    }
}

static clg_status launch(trial *t)
{
    size_t global[3], local[3], offset[3];
    bool has_offset = false;
    CLG_TRY(begin_launch(t, t->request->args.count));
    for (size_t i = 0; i < t->request->args.count; i++) CLG_TRY(set_arg(t, i));
    choose_range(t, global, local);
    for (int i = 0; i < 3; i++) {
        offset[i] = (size_t)t->request->launch.offset[i];
        has_offset = has_offset || offset[i] > 0;
    }
    CL_TRY(t->ocl, EnqueueNDRangeKernel,
           (ocl_queue_handle(t->queue), t->kernel, t->request->launch.n_dims,
            has_offset ? offset : NULL, global, t->request->launch.has_local ? local : NULL, 0,
            NULL, NULL));
    return ocl_queue_finish(t->queue);
}

static clg_status read_content(trial *t, helper_reply *reply)
{
    const int32_t which = t->request->content_arg;
    if (which < 0 || (size_t)which >= t->request->args.count || !t->buffers[which]) return CLG_OK;
    const size_t n_bytes = t->request->args.items[which].size_bytes;
    reply->content = memory_alloc(n_bytes + 1);
    if (!reply->content) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    reply->content_bytes = n_bytes;
    return ocl_queue_read(t->queue, t->buffers[which], 0, reply->content, n_bytes, true);
}

/* Reuses the previous request's program if the text is the same. A request without a launch (for a
 * binary only) builds a new one: PoCL returns a program's binary as it was when first read. */
static clg_status find_program(trial *t)
{
    const helper_request *r = t->request;
    helper_device *d = t->device;
    const program_source text = {r->source, r->source_bytes, r->baseline};
    const uint32_t how[2] = {r->quirks, r->baseline};
    const hash128 parts[2] = {hash128_bytes(r->source, r->source_bytes),
                              hash128_bytes(how, sizeof how)};
    const hash128 key = hash128_bytes(parts, sizeof parts);
    if (!d->last_program || !hash128_equal(d->last_text, key) || !r->has_launch) {
        cl_program program;
        CLG_TRY(program_compile(t->ocl, r->name, &text, true, &program));
        if (d->last_program) (void)cl.ReleaseProgram(d->last_program);
        d->last_program = program;
        d->last_text = key;
    }
    t->program = d->last_program;
    return CLG_OK;
}

static clg_status build(trial *t)
{
    const helper_request *r = t->request;
    cl_int code;
    CLG_TRY(find_program(t));
    if (!r->entry[0]) return CLG_OK;
    t->kernel = cl.CreateKernel(t->program, r->entry, &code);
    return context_check(t->ocl, code, "clCreateKernel");
}

static clg_status multiply(trial *t)
{
    ocl_gemm g = t->request->gemm;
    int64_t n_elems[3];
    CLG_TRY(blas_open(t->request->blas));
    CLG_TRY(begin_launch(t, 3));
    blas_extents(&g, n_elems);
    for (size_t i = 0; i < 3; i++) {
        const size_t n_bytes = (size_t)n_elems[i] * sizeof(float);
        CLG_TRY(ocl_buffer_create(t->ocl, n_bytes, OCL_BUFFER_DEVICE, &t->buffers[i]));
        CLG_TRY(clear_buffer(t, t->buffers[i]));
    }
    g.a = t->buffers[0];
    g.b = t->buffers[1];
    g.c = t->buffers[2];
    CLG_TRY(ocl_queue_gemm(t->queue, &g));
    return ocl_queue_finish(t->queue);
}

static clg_status execute(trial *t, helper_reply *reply)
{
    if (t->request->has_gemm) return multiply(t);
    CLG_TRY(build(t));
    if (may_launch(t)) {
        CLG_TRY(launch(t));
        CLG_TRY(read_content(t, reply));
    }
    if (!t->request->wants_binary) return CLG_OK;
    return program_binary(t->ocl, t->program, 0, &reply->binary, &reply->binary_bytes);
}

void helper_execute(helper_device *device, const helper_request *request, helper_reply *out_reply)
{
    trial t = {.device = device, .ocl = device->context, .request = request};
    *out_reply = (helper_reply){.outcome = HELPER_DONE};
    /* Programs are built as the library builds them. */
    t.ocl->machine.caps[t.ocl->index].quirks = request->quirks;
    const clg_status status = execute(&t, out_reply);
    if (status != CLG_OK) {
        helper_reply_deinit(out_reply);
        out_reply->outcome = status == CLG_ERROR_KERNEL_BUILD ? HELPER_REFUSED : HELPER_UNABLE;
        out_reply->status = status;
        out_reply->text = memory_strdup(error_text());
    }
    clear(&t);
}
