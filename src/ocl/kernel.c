/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates kernels, sets their arguments, and computes the keys of their launch configurations (see
 * program.h). A kernel belongs to one thread at a time; programs are shared by threads.
 */
#include "ocl/kernel.h"

#include "base/memory.h"
#include "ocl/helper/helper.h"

#include <string.h>

static clg_status group_info(const ocl_kernel *k, cl_kernel_work_group_info what, size_t n_bytes,
                             void *out)
{
    CL_TRY(k->context, GetKernelWorkGroupInfo,
           (k->handle, k->context->device, what, n_bytes, out, NULL));
    return CLG_OK;
}

/* Reads the kernel's limit of work-items; UNSUPPORTED_DEVICE if it needs more local memory than the
 * device has, which drivers notice at a launch, if at all. */
static clg_status read_limits(ocl_kernel *k)
{
    const device_record *r = context_record(k->context);
    cl_ulong local_bytes = 0;
    CLG_TRY(group_info(k, CL_KERNEL_WORK_GROUP_SIZE, sizeof k->max_items, &k->max_items));
    CLG_TRY(group_info(k, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes));
    if (r->local_mem_bytes == 0 || local_bytes <= r->local_mem_bytes) return CLG_OK;
    return error_set(
        CLG_ERROR_UNSUPPORTED_DEVICE, "it needs %llu bytes of local memory, and '%s' has %llu",
        (unsigned long long)local_bytes, r->name, (unsigned long long)r->local_mem_bytes);
}

/* Creates the driver's kernel of a built program. */
static clg_status open_kernel(ocl_kernel *k)
{
    cl_int code;
    CLG_TRY(ocl_context_require(k->context));
    k->handle = cl.CreateKernel(k->program->handle, k->entry, &code);
    clg_status status = context_check(k->context, code, "clCreateKernel");
    if (status == CLG_OK) status = read_limits(k);
    return status == CLG_OK
               ? CLG_OK
               : error_prefix(status, "kernel '%s' of '%s'", k->entry, k->program->name);
}

/* Creates a kernel of a program, built or not. */
static clg_status create(ocl_context *ocl, ocl_program *p, const char *entry,
                         ocl_kernel **out_kernel)
{
    ocl_kernel *k = memory_zalloc(1, sizeof *k);
    if (!k) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    k->context = ocl_context_retain(ocl);
    k->program = p;
    k->entry = memory_strdup(entry);
    k->entry_hash = hash_string(entry);
    clg_status status = k->entry ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK && program_handle(ocl, p)) status = open_kernel(k);
    if (status != CLG_OK) {
        ocl_kernel_free(k);
        return status;
    }
    *out_kernel = k;
    return CLG_OK;
}

clg_status ocl_kernel_create(ocl_context *ocl, const kernel_ref *ref, ocl_kernel **out_kernel)
{
    ocl_program *p;
    *out_kernel = NULL;
    CLG_TRY(program_get(ocl, ref, &p));
    return create(ocl, p, ref->entry, out_kernel);
}

clg_status ocl_kernel_create_draft(ocl_context *ocl, const kernel_ref *ref, ocl_kernel **out_kernel)
{
    ocl_program *p;
    *out_kernel = NULL;
    if (!helper_is_on(ocl)) return ocl_kernel_create(ocl, ref, out_kernel);
    CLG_TRY(program_find(ocl, ref, &p));
    return create(ocl, p, ref->entry, out_kernel);
}

clg_status ocl_kernel_create_alike(const ocl_kernel *k, ocl_kernel **out_kernel)
{
    *out_kernel = NULL;
    return create(k->context, k->program, k->entry, out_kernel);
}

void ocl_kernel_free(ocl_kernel *k)
{
    if (!k) return;
    if (k->handle) (void)cl.ReleaseKernel(k->handle);
    memory_free(k->entry);
    kernel_args_deinit(&k->args);
    ocl_context_free(k->context);
    memory_free(k);
}

static clg_status set(ocl_kernel *k, uint32_t index, size_t size_bytes, const void *data)
{
    if (!k->handle) return CLG_OK; /* a draft's arguments are set when it is built */
    CLG_TRY(ocl_context_require(k->context));
    cl_int code = cl.SetKernelArg(k->handle, index, size_bytes, data);
    if (code == CL_SUCCESS) return CLG_OK;
    return error_prefix(context_check(k->context, code, "clSetKernelArg"),
                        "argument %u (%zu bytes) of kernel '%s' of '%s'", (unsigned)index,
                        size_bytes, k->entry, k->program->name);
}

/* Sets an argument that was just recorded. */
static clg_status set_or_forget(ocl_kernel *k, uint32_t index, size_t size_bytes, const void *data)
{
    const clg_status status = set(k, index, size_bytes, data);
    if (status != CLG_OK) kernel_args_unset(&k->args, index);
    return status;
}

/* Kernels that a plan took over from another one have most arguments already: a token of a decoder
 * of 0.5B parameters would set 7,300, each an allocation in PoCL. */
clg_status ocl_kernel_set_buffer(ocl_kernel *k, uint32_t index, ocl_buffer *b)
{
    const uint64_t serial = b ? ocl_buffer_serial(b) : 0;
    cl_mem memory = b ? ocl_buffer_handle(b) : NULL;
    if (kernel_args_has_buffer(&k->args, index, serial)) return CLG_OK;
    CLG_TRY(kernel_args_set_buffer(&k->args, index, b, serial, b ? ocl_buffer_size(b) : 0, NULL));
    return set_or_forget(k, index, sizeof memory, &memory);
}

clg_status ocl_kernel_set_bytes(ocl_kernel *k, uint32_t index, size_t size_bytes, const void *data)
{
    if (kernel_args_has_value(&k->args, index, size_bytes, data)) return CLG_OK;
    CLG_TRY(kernel_args_set_value(&k->args, index, size_bytes, data));
    return set_or_forget(k, index, size_bytes, data);
}

static clg_status set_recorded(ocl_kernel *k, uint32_t index)
{
    const kernel_arg *arg = &k->args.items[index];
    switch (arg->kind) {
    case KERNEL_ARG_UNSET: break;
    case KERNEL_ARG_VALUE: return set(k, index, arg->size_bytes, k->args.bytes + arg->at);
    case KERNEL_ARG_LOCAL: return set(k, index, arg->size_bytes, NULL);
    case KERNEL_ARG_BUFFER: {
        cl_mem memory = arg->buffer ? ocl_buffer_handle(arg->buffer) : NULL;
        return set(k, index, sizeof memory, &memory);
    }
    }
    return CLG_OK;
}

clg_status kernel_build_draft(ocl_kernel *k)
{
    if (k->handle) return CLG_OK;
    CLG_TRY(program_build(k->context, k->program, k->entry));
    clg_status status = open_kernel(k);
    for (uint32_t i = 0; i < k->args.count && status == CLG_OK; i++) status = set_recorded(k, i);
    if (status != CLG_OK && k->handle) { /* a draft again, whose arguments are only recorded */
        (void)cl.ReleaseKernel(k->handle);
        k->handle = NULL;
    }
    return status;
}

#define FORM_WORDS 5

/* Writes the launch configuration: the number of dimensions and, on drivers that recompile a kernel
 * for them, local sizes and which global sizes are 65536 or more. Never all zeros, since n_dims is
 * not 0. */
static void describe_form(const ocl_context *ocl, uint32_t n_dims, const size_t *global,
                          const size_t *local, uint64_t form[FORM_WORDS])
{
    memset(form, 0, FORM_WORDS * sizeof *form);
    form[0] = n_dims;
    if (!context_has_quirk(ocl, QUIRK_GLOBAL_SIZE_RECOMPILES)) return;
    for (uint32_t i = 0; i < n_dims; i++) {
        form[1 + i] = local ? local[i] : global[i];
        form[4] |= (uint64_t)(global[i] >= 65536) << i;
    }
    form[4] |= (uint64_t)(local == NULL) << 3;
}

uint64_t kernel_form(const ocl_context *ocl, uint64_t entry_hash, uint32_t n_dims,
                     const size_t *global, const size_t *local)
{
    uint64_t form[FORM_WORDS];
    describe_form(ocl, n_dims, global, local, form);
    return hash_bytes(form, sizeof form, entry_hash);
}

clg_status kernel_note_launch(ocl_kernel *k, uint32_t n_dims, const size_t *offset,
                              const size_t *global, const size_t *local)
{
    uint64_t form[FORM_WORDS];
    describe_form(k->context, n_dims, global, local, form);
    if (memcmp(form, k->last_form, sizeof form) == 0) return CLG_OK;
    const uint64_t hash = hash_bytes(form, sizeof form, k->entry_hash);
    if (!program_has_form(k->context, k->program, hash)) {
        CLG_TRY(trial_of_launch(k, hash, n_dims, offset, global, local, NULL, NULL));
        program_note_form(k->context, k->program, hash);
    }
    memcpy(k->last_form, form, sizeof form);
    return CLG_OK;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

launch_form kernel_launch_form(const ocl_kernel *k, uint32_t n_dims, const size_t *global,
                               const size_t *local)
{
    launch_form f = {.kernel = {k->program->serial, k->entry_hash}, .local = {1, 1, 1}};
    if (local) {
        for (uint32_t i = 0; i < n_dims; i++) f.local[i] = local[i];
        f.extent[0] = larger(global[0], n_dims > 1 ? global[1] : 1);
        f.extent[1] = n_dims > 2 ? global[2] : 1;
    } else { /* the driver chooses the local size, by the global size */
        for (uint32_t i = 0; i < n_dims; i++) f.local[i] = UINT64_MAX - global[i];
    }
    return f;
}

bool kernel_launch_is_known(ocl_kernel *k, const launch_form *form)
{
    if (k->known_epoch == launch_guard_epoch() &&
        memcmp(k->known.local, form->local, sizeof form->local) == 0 &&
        form->extent[0] <= k->known.extent[0] && form->extent[1] <= k->known.extent[1])
        return true;
    if (!launch_guard_knows(form)) return false;
    k->known = *form;
    k->known_epoch = launch_guard_epoch();
    return true;
}

static size_t product(uint32_t n, const size_t *x)
{
    size_t p = 1;
    for (uint32_t i = 0; i < n; i++) p *= x[i];
    return p;
}

/* Divides the longest even side by 2; returns false when all are odd. */
static bool halve(uint32_t n_dims, size_t *local)
{
    size_t *longest = NULL;
    for (uint32_t i = 0; i < n_dims; i++)
        if (local[i] % 2 == 0 && (!longest || local[i] > *longest)) longest = &local[i];
    if (longest) *longest /= 2;
    return longest != NULL;
}

static clg_status depends_on_groups(const ocl_kernel *k, bool *out_minds)
{
    size_t fixed[3] = {0};
    cl_ulong local_bytes = 0;
    CLG_TRY(group_info(k, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof fixed, fixed));
    CLG_TRY(group_info(k, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes));
    *out_minds = fixed[0] != 0 || local_bytes != 0;
    return CLG_OK;
}

clg_status kernel_fit_group(const ocl_kernel *k, uint32_t n_dims, size_t *local)
{
    bool is_fixed;
    if (k->max_items == 0 || product(n_dims, local) <= k->max_items) return CLG_OK;
    CLG_TRY(depends_on_groups(k, &is_fixed));
    while (!is_fixed && product(n_dims, local) > k->max_items && halve(n_dims, local)) continue;
    return CLG_OK;
}
