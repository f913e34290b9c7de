/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and frees contexts, copies between host and device outside of runs, and wraps device
 * buffers as values.
 */
#include "session/context.h"

#include "base/clock.h"
#include "plan/tuning_table.h"
#include "session/exec/exec.h"

clg_status context_create(ocl_context *ocl, const context_settings *settings,
                          device_context **out_context)
{
    *out_context = NULL;
    device_context *context = memory_zalloc(1, sizeof *context);
    clg_status status = context ? mutex_init(&context->utility_lock) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) goto no_lock;
    CLG_TRY_GOTO(mutex_init(&context->registry_lock), no_registry);
    CLG_TRY_GOTO(mutex_init(&context->test_lock), no_tests);
    CLG_TRY_GOTO(mutex_init(&context->selftest_records_lock), no_selftest_records);
    CLG_TRY_GOTO(ocl_queue_create_upload(ocl, &context->utility), no_queue);
    refcount_init(&context->refs);
    atomic_init(&context->plans_made, 0);
    atomic_init(&context->weights_packed, 0);
    context->ocl = ocl;
    context->profiling = settings->profiling;
    context->trusting = settings->trusting;
    context->budget.limit_ns = caps_launch_limit_ns(ocl_context_caps(ocl), settings->max_launch_ms);
    context->now_ns = time_now_ns;
    context->budget.rates = caps_rates(ocl_context_record(ocl), ocl_context_caps(ocl));
    context_describe(ocl_context_record(ocl), ocl_context_caps(ocl), &context->info);
    *out_context = context;
    return CLG_OK;
no_queue:
    mutex_deinit(&context->selftest_records_lock);
no_selftest_records:
    mutex_deinit(&context->test_lock);
no_tests:
    mutex_deinit(&context->registry_lock);
no_registry:
    mutex_deinit(&context->utility_lock);
no_lock:
    memory_free(context);
    ocl_context_free(ocl);
    return status;
}

device_context *context_retain(device_context *context)
{
    refcount_retain(&context->refs);
    return context;
}

void context_free(device_context *context)
{
    if (fork_is_child() || !context || !refcount_release(&context->refs)) return;
    ocl_queue_free(context->utility);
    tuning_table_free(context->choices);
    selftest_records_deinit(&context->records);
    hash_map_deinit(&context->validated);
    mutex_deinit(&context->selftest_records_lock);
    mutex_deinit(&context->test_lock);
    mutex_deinit(&context->registry_lock);
    mutex_deinit(&context->utility_lock);
    ocl_context_free(context->ocl);
    memory_free(context);
}

void context_inherit(device_context *context, device_context *earlier)
{
    mutex_lock(&earlier->registry_lock);
    context->choices = tuning_table_retain(earlier->choices);
    context->choices_loaded = earlier->choices_loaded;
    mutex_unlock(&earlier->registry_lock);
}

bool context_answers(device_context *context)
{
    if (ocl_context_is_lost(context->ocl)) return false;
    mutex_lock(&context->utility_lock);
    const bool answers = ocl_queue_probe(context->utility);
    mutex_unlock(&context->utility_lock);
    return answers;
}

void context_describe(const device_record *record, const device_caps *caps,
                      clg_device_info *out_info)
{
    *out_info = (clg_device_info){.struct_size = sizeof *out_info,
                                  .selector = caps->selector,
                                  .id = caps->id,
                                  .platform = record->platform_name,
                                  .name = record->name,
                                  .vendor = record->platform_vendor,
                                  .driver = record->driver_version,
                                  .opencl_version = record->version,
                                  .quirks = caps->quirk_names,
                                  .kind = caps->kind,
                                  .kernel_class = caps->kernel_class,
                                  .compute_units = caps->compute_units,
                                  .max_clock_mhz = record->max_clock_mhz,
                                  .global_mem_bytes = caps->global_mem_bytes,
                                  .max_alloc_bytes = caps->max_alloc_bytes,
                                  .local_mem_bytes = caps->local_mem_bytes,
                                  .unified_memory = caps->unified_memory,
                                  .probed = caps->probed,
                                  .fp16 = caps->fp16,
                                  .fp64 = caps->fp64,
                                  .subgroups = caps->subgroups,
                                  .int8_dot = caps->int8_dot,
                                  .matrix = caps_has_matrix(caps),
                                  .is_default = caps->is_default,
                                  .auto_reason = caps->auto_reason,
                                  .vendor_id = record->vendor_id};
    if (!record->has_pci) return;
    out_info->pci_domain = record->pci_domain;
    out_info->pci_bus = record->pci_bus;
    out_info->pci_device = record->pci_device;
    out_info->pci_function = record->pci_function;
}

clg_status context_upload(device_context *context, ocl_buffer *b, size_t offset_bytes,
                          const void *data, size_t size_bytes)
{
    if (size_bytes == 0) return CLG_OK;
    mutex_lock(&context->utility_lock);
    clg_status status = ocl_queue_write(context->utility, b, offset_bytes, data, size_bytes, true);
    mutex_unlock(&context->utility_lock);
    return status;
}

clg_status context_download(device_context *context, ocl_buffer *b, size_t offset_bytes, void *data,
                            size_t size_bytes)
{
    if (size_bytes == 0) return CLG_OK;
    mutex_lock(&context->utility_lock);
    clg_status status = ocl_queue_read(context->utility, b, offset_bytes, data, size_bytes, true);
    mutex_unlock(&context->utility_lock);
    return status;
}

clg_status context_clear(device_context *context, ocl_buffer *b, size_t size_bytes)
{
    static const uint8_t zero[4] = {0};
    mutex_lock(&context->utility_lock);
    clg_status status = ocl_queue_fill(context->utility, b, 0, size_bytes, zero, sizeof zero);
    if (status == CLG_OK) status = ocl_queue_finish(context->utility);
    mutex_unlock(&context->utility_lock);
    return status;
}

/* ---- device values --------------------------------------------------------------------------- */

typedef struct device_storage {
    device_context *context;
    ocl_buffer *buffer;
} device_storage;

static void storage_release(void *storage)
{
    device_storage *s = storage;
    if (fork_is_child()) return; /* the parent's */
    ocl_buffer_free(s->buffer);
    context_free(s->context);
    memory_free(s);
}

static clg_status storage_read(void *storage, size_t offset_bytes, void *data, size_t size_bytes)
{
    device_storage *s = storage;
    CLG_TRY(fork_check());
    return context_download(s->context, s->buffer, offset_bytes, data, size_bytes);
}

/* Waits until the write is complete, since a queue of the application may read the buffer next. */
static clg_status storage_write(void *storage, size_t offset_bytes, const void *data,
                                size_t size_bytes)
{
    device_storage *s = storage;
    device_context *context = s->context;
    CLG_TRY(fork_check());
    if (size_bytes == 0) return CLG_OK;
    mutex_lock(&context->utility_lock);
    clg_status status =
        ocl_queue_write(context->utility, s->buffer, offset_bytes, data, size_bytes, false);
    if (status == CLG_OK) status = ocl_queue_finish(context->utility);
    mutex_unlock(&context->utility_lock);
    return status;
}

static const value_device_ops device_ops = {storage_release, storage_read, storage_write};

clg_status context_wrap_buffer(device_context *context, ocl_buffer *b, size_t offset_bytes,
                               clg_dtype dtype, const shape *dims, clg_value **out_value)
{
    *out_value = NULL;
    device_storage *s = memory_alloc(sizeof *s);
    if (!s) {
        ocl_buffer_free(b);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    *s = (device_storage){context_retain(context), b};
    clg_status status = value_create_device(&device_ops, s, offset_bytes, dtype, dims, out_value);
    if (status != CLG_OK) storage_release(s);
    return status;
}

ocl_buffer *value_buffer(const clg_value *v, device_context **out_context)
{
    if (v->device_ops != &device_ops) {
        *out_context = NULL;
        return NULL;
    }
    device_storage *s = v->storage;
    *out_context = s->context;
    return s->buffer;
}

bool value_is_lost(const clg_value *v)
{
    device_context *owner;
    if (value_buffer(v, &owner)) return ocl_context_is_lost(owner->ocl);
    for (size_t i = 0; v->kind != CLG_VALUE_TENSOR && i < value_length(v); i++)
        if (value_is_lost(value_get(v, i))) return true;
    return false;
}

ocl_buffer *context_value_buffer(const device_context *context, const clg_value *v)
{
    device_context *owner;
    ocl_buffer *b = value_buffer(v, &owner);
    return owner == context ? b : NULL;
}

static clg_status check_pair(const clg_value *from, const clg_value *to)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (from->kind != CLG_VALUE_TENSOR || to->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "only tensors can be copied");
    if (from->dtype == CLG_STRING || to->dtype == CLG_STRING)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "tensors of strings cannot be copied");
    if (from->dtype == to->dtype && from->n_elements == to->n_elements) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s%s cannot be copied to %s%s",
                     dtype_name(from->dtype), shape_text(&from->dims, a), dtype_name(to->dtype),
                     shape_text(&to->dims, b));
}

/* Returns whether two tensors of device memory have bytes in common, which OpenCL does not copy. */
static bool share_memory(const ocl_buffer *a, const clg_value *from, const ocl_buffer *b,
                         const clg_value *to)
{
    const size_t x = from->offset_bytes, y = to->offset_bytes;
    return ocl_buffer_handle(a) == ocl_buffer_handle(b) && x < y + to->size_bytes &&
           y < x + from->size_bytes;
}

static clg_status copy_on_device(device_context *context, ocl_buffer *a, const clg_value *from,
                                 ocl_buffer *b, const clg_value *to)
{
    CLG_TRY(fork_check());
    mutex_lock(&context->utility_lock);
    clg_status status = ocl_queue_copy(context->utility, a, from->offset_bytes, b, to->offset_bytes,
                                       from->size_bytes);
    if (status == CLG_OK) status = ocl_queue_finish(context->utility);
    mutex_unlock(&context->utility_lock);
    return status;
}

clg_status context_copy_value(const clg_value *from, clg_value *to)
{
    device_context *context, *other;
    clg_value *host;
    CLG_TRY(check_pair(from, to));
    if (from == to || from->size_bytes == 0) return CLG_OK;
    ocl_buffer *a = value_buffer(from, &context), *b = value_buffer(to, &other);
    if (a && b && context == other && !share_memory(a, from, b, to))
        return copy_on_device(context, a, from, b, to);
    if (!a) return value_write(to, value_host_data(from), from->size_bytes);
    if (!b) return value_read(from, value_host_data(to), to->size_bytes);
    CLG_TRY(value_to_host((clg_value *)from, &host));
    const clg_status status = value_write(to, value_host_data(host), host->size_bytes);
    value_free(host);
    return status;
}
