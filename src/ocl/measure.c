/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a device's peak rates: arithmetic, memory, transfers, launches. Each figure is the best
 * of a few tries of some tens of milliseconds, by the host's clock. On a shared machine it holds
 * for that moment only.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "ocl/ocl_context.h"

#include <stdio.h>

#define N_TRIES 5
#define TARGET_NS 30000000.0 /* approximate duration of a try */
#define COPY_MAX_BYTES ((size_t)256 << 20)
#define TRANSFER_BYTES ((size_t)64 << 20)
#define ITEMS_MAX 65472u /* PoCL recompiles for a dimension of 65,536 */

typedef struct bench {
    ocl_context *context;
    ocl_queue *queue;
    ocl_buffer *x, *y;
    bool slow; /* a simulator or rasteriser: smaller problems, fewer tries */
} bench;

static uint64_t at_most(uint64_t value, uint64_t limit) { return value < limit ? value : limit; }

/* Returns the vector width, in elements, of all kernels here: one program to compile per dtype. */
static unsigned lanes_of(const device_caps *caps)
{
    return caps->kernel_class == CLG_KERNELS_SIMD && caps->vector_width > 4 ? caps->vector_width
                                                                            : 4;
}

static clg_status make_kernel(const bench *b, const char *entry, int dtype, ocl_kernel **out_kernel)
{
    char prelude[64];
    snprintf(prelude, sizeof prelude, "#define P_T %d\n#define P_VEC %u\n", dtype,
             lanes_of(context_caps(b->context)));
    const kernel_ref ref = {.source = "measure", .entry = entry, .prelude = prelude};
    return ocl_kernel_create(b->context, &ref, out_kernel);
}

static clg_status time_launch(const bench *b, ocl_kernel *k, uint64_t global, uint64_t local,
                              double *out_ns)
{
    const uint64_t start = time_now_ns();
    CLG_TRY(ocl_queue_launch(b->queue, k, 1, &global, &local));
    CLG_TRY(ocl_queue_finish(b->queue));
    *out_ns = (double)(time_now_ns() - start) + 1.0;
    return CLG_OK;
}

/* Computes the shortest duration of N_TRIES launches (2 when slow), after one that may compile. */
static clg_status time_best(const bench *b, ocl_kernel *k, uint64_t global, uint64_t local,
                            double *out_ns)
{
    double ns;
    CLG_TRY(time_launch(b, k, global, local, &ns));
    CLG_TRY(time_launch(b, k, global, local, out_ns));
    for (int i = 1; i < (b->slow ? 2 : N_TRIES); i++) {
        CLG_TRY(time_launch(b, k, global, local, &ns));
        if (ns < *out_ns) *out_ns = ns;
    }
    return CLG_OK;
}

static clg_status set_iterations(ocl_kernel *k, int32_t n_rounds)
{
    return ocl_kernel_set_bytes(k, 2, sizeof n_rounds, &n_rounds);
}

/* Finds a number of iterations that lasts about TARGET_NS or longer. */
static clg_status find_iterations(const bench *b, ocl_kernel *k, uint64_t global, uint64_t local,
                                  int32_t *out_iterations)
{
    double ns = 0.0;
    int32_t iterations = 16;
    CLG_TRY(set_iterations(k, iterations));
    CLG_TRY(time_launch(b, k, global, local, &ns));
    for (;;) {
        CLG_TRY(set_iterations(k, iterations));
        CLG_TRY(time_launch(b, k, global, local, &ns));
        if (ns > TARGET_NS / 4 || iterations > (1 << 24)) break;
        iterations *= 4;
    }
    *out_iterations = (int32_t)(iterations * (ns < TARGET_NS ? TARGET_NS / ns : 1.0));
    return CLG_OK;
}

static clg_status measure_arithmetic(const bench *b, int dtype, double *out_gflops)
{
    const device_caps *caps = context_caps(b->context);
    const bool simd = caps->kernel_class == CLG_KERNELS_SIMD;
    const uint64_t local = simd ? 1 : at_most(caps->max_work_group_size, b->slow ? 16 : 256);
    const uint64_t groups = caps->compute_units * (simd || b->slow ? 4u : 16u);
    const uint64_t global = at_most(groups * local, ITEMS_MAX / local * local);
    ocl_kernel *k;
    int32_t iterations;
    double ns = 0.0;
    CLG_TRY(make_kernel(b, "fma_loop", dtype, &k));
    clg_status status;
    CLG_TRY_GOTO(ocl_kernel_set_buffer(k, 0, b->x), out);
    CLG_TRY_GOTO(ocl_kernel_set_buffer(k, 1, b->y), out);
    CLG_TRY_GOTO(find_iterations(b, k, global, local, &iterations), out);
    CLG_TRY_GOTO(set_iterations(k, iterations), out);
    CLG_TRY_GOTO(time_best(b, k, global, local, &ns), out);
    *out_gflops = 16.0 * lanes_of(caps) * (double)iterations * (double)global / ns;
out:
    ocl_kernel_free(k);
    return status;
}

/* How the copy is divided: adjacent work-items copy adjacent vectors on GPUs; on CPUs each copies
 * its own contiguous range. */
typedef struct work_split {
    uint64_t global, local;
    int32_t first, step, n;
} work_split;

static work_split work_split_for(const device_caps *caps, size_t size_bytes)
{
    const bool simd = caps->kernel_class == CLG_KERNELS_SIMD;
    work_split s = {.local = simd ? 1 : at_most(caps->max_work_group_size, 64)};
    const uint64_t n_vectors = size_bytes / (4 * lanes_of(caps));
    const uint64_t groups = at_most(caps->compute_units * 32u, ITEMS_MAX / s.local);
    s.global = groups * s.local;
    s.n = (int32_t)(n_vectors / s.global);
    s.first = simd ? s.n : 1;
    s.step = simd ? 1 : (int32_t)s.global;
    return s;
}

static clg_status measure_copy(const bench *b, size_t size_bytes, double *out_gbytes_per_s)
{
    const work_split s = work_split_for(context_caps(b->context), size_bytes);
    ocl_kernel *k;
    double ns = 0.0;
    CLG_TRY(make_kernel(b, "copy", 1, &k));
    clg_status status;
    CLG_TRY_GOTO(ocl_kernel_set_buffer(k, 0, b->x), out);
    CLG_TRY_GOTO(ocl_kernel_set_buffer(k, 1, b->y), out);
    CLG_TRY_GOTO(ocl_kernel_set_bytes(k, 2, sizeof s.first, &s.first), out);
    CLG_TRY_GOTO(ocl_kernel_set_bytes(k, 3, sizeof s.step, &s.step), out);
    CLG_TRY_GOTO(ocl_kernel_set_bytes(k, 4, sizeof s.n, &s.n), out);
    CLG_TRY_GOTO(time_best(b, k, s.global, s.local, &ns), out);
    *out_gbytes_per_s =
        8.0 * lanes_of(context_caps(b->context)) * (double)s.n * (double)s.global / ns;
out:
    ocl_kernel_free(k);
    return status;
}

static clg_status measure_transfers(const bench *b, size_t size_bytes, ocl_measurement *out)
{
    double up_ns = 1e300, down_ns = 1e300;
    char *data = memory_zalloc(size_bytes, 1);
    if (!data) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (int i = 0; i < (b->slow ? 2 : N_TRIES) && status == CLG_OK; i++) {
        const uint64_t start = time_now_ns();
        CLG_TRY_GOTO(ocl_queue_write(b->queue, b->x, 0, data, size_bytes, true), failed);
        const uint64_t middle = time_now_ns();
        CLG_TRY_GOTO(ocl_queue_read(b->queue, b->x, 0, data, size_bytes, true), failed);
        const double up = (double)(middle - start) + 1.0,
                     down = (double)(time_now_ns() - middle) + 1.0;
        up_ns = up < up_ns ? up : up_ns;
        down_ns = down < down_ns ? down : down_ns;
    }
    out->upload_gbytes_per_s = (double)size_bytes / up_ns;
    out->download_gbytes_per_s = (double)size_bytes / down_ns;
failed:
    memory_free(data);
    return status;
}

static clg_status measure_launch(const bench *b, double *out_us)
{
    ocl_kernel *k;
    double best_ns = 1e300, ns;
    CLG_TRY(make_kernel(b, "nothing", 1, &k));
    clg_status status = ocl_kernel_set_buffer(k, 0, b->y);
    for (int i = 0; i < (b->slow ? 4 : 64) && status == CLG_OK; i++) {
        status = time_launch(b, k, 1, 1, &ns);
        if (status == CLG_OK && i > 0 && ns < best_ns) best_ns = ns;
    }
    if (status == CLG_OK) *out_us = best_ns / 1000.0;
    ocl_kernel_free(k);
    return status;
}

/* Returns the size of the buffers in bytes, a multiple of 16: 4 times the cache, 64 to 256 MiB
 * (4 MiB when slow), less where the device's limits require it, but at least 1 MiB. */
static size_t copy_size(const ocl_context *ocl, bool slow)
{
    const device_record *r = context_record(ocl);
    uint64_t size = slow ? (uint64_t)4 << 20 : 4 * r->cache_bytes;
    if (!slow && size < ((uint64_t)64 << 20)) size = (uint64_t)64 << 20;
    size = at_most(size, COPY_MAX_BYTES);
    if (r->max_alloc_bytes > 0) size = at_most(size, r->max_alloc_bytes);
    if (r->global_mem_bytes > 0) size = at_most(size, r->global_mem_bytes / 8);
    size = size / 16 * 16;
    return size < 1048576 ? 1048576 : (size_t)size;
}

static clg_status measure_all(bench *b, ocl_measurement *out)
{
    const float factors[2] = {0.5f, 0.5f}; /* v = v / 2 + 1 / 2 stays near 1 */
    const float zero = 0.0f;
    const size_t n_copy = copy_size(b->context, b->slow);
    CLG_TRY(ocl_queue_create(b->context, &b->queue));
    CLG_TRY(ocl_buffer_create(b->context, n_copy, OCL_BUFFER_DEVICE, &b->x));
    CLG_TRY(ocl_buffer_create(b->context, n_copy, OCL_BUFFER_DEVICE, &b->y));
    CLG_TRY(ocl_queue_fill(b->queue, b->x, 0, n_copy, &zero, sizeof zero));
    CLG_TRY(ocl_queue_fill(b->queue, b->y, 0, n_copy, &zero, sizeof zero));
    CLG_TRY(measure_copy(b, n_copy, &out->memory_gbytes_per_s));
    CLG_TRY(measure_transfers(b, n_copy < TRANSFER_BYTES ? n_copy : TRANSFER_BYTES, out));
    CLG_TRY(ocl_queue_write(b->queue, b->x, 0, factors, sizeof factors, true));
    CLG_TRY(measure_arithmetic(b, 1, &out->fp32_gflops));
    if (context_caps(b->context)->fp16) CLG_TRY(measure_arithmetic(b, 10, &out->fp16_gflops));
    return measure_launch(b, &out->launch_us);
}

clg_status ocl_measure(ocl_context *ocl, ocl_measurement *out_measurement)
{
    *out_measurement = (ocl_measurement){0};
    bench b = {.context = ocl, .slow = context_has_quirk(ocl, QUIRK_SLOW_LAUNCH)};
    clg_status status = measure_all(&b, out_measurement);
    ocl_queue_free(b.queue);
    ocl_buffer_free(b.x);
    ocl_buffer_free(b.y);
    if (status != CLG_OK) *out_measurement = (ocl_measurement){0};
    return status;
}
