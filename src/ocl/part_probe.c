/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests once per device whether its driver can launch parts of an NDRange: runs part_probe.cl over
 * a small NDRange in parts, along each of two dimensions.
 */
#include "base/log.h"
#include "base/memory.h"
#include "ocl/ocl_context.h"

#define RECORD "parts of launches 1"
#define N_PER_DIM 6 /* work-items of a dimension */
#define LOCAL 2     /* work-items of a group, along dimension 0 */
#define N_ITEMS (N_PER_DIM * N_PER_DIM)

typedef enum parts_state { PARTS_UNKNOWN, PARTS_WORK, PARTS_FAIL } parts_state;

/* Returns what work-item (x, y) must store. */
static uint32_t expected(uint32_t x, uint32_t y)
{
    const uint32_t groups = N_PER_DIM / LOCAL;
    return x / LOCAL << 28 | groups << 24 | x << 20 | (uint32_t)N_PER_DIM << 16 | y << 12 |
           (uint32_t)N_PER_DIM << 8 | y << 4 | (uint32_t)N_PER_DIM;
}

/* Launches the kernel in two parts along `dim`, the second one first. */
static clg_status launch_parts(ocl_queue *q, ocl_kernel *k, uint32_t dim)
{
    const uint64_t local[2] = {LOCAL, 1};
    for (uint64_t part = 2; part-- > 0;) {
        uint64_t offset[2] = {N_PER_DIM, N_PER_DIM}, global[2] = {N_PER_DIM, N_PER_DIM};
        offset[dim] = part * LOCAL;
        global[dim] = part == 0 ? LOCAL : N_PER_DIM - LOCAL;
        CLG_TRY(ocl_queue_launch_at(q, k, 2, offset, global, local));
    }
    return CLG_OK;
}

static clg_status test_dim(ocl_context *ocl, ocl_queue *q, ocl_buffer *b, uint32_t dim,
                           bool *out_works)
{
    const kernel_ref ref = {
        .source = "part_probe", .entry = "part_probe", .prelude = "", .part = 1 + dim};
    uint32_t seen[N_ITEMS];
    static const uint32_t none = UINT32_MAX;
    ocl_kernel *k;
    CLG_TRY(ocl_kernel_create(ocl, &ref, &k));
    clg_status status;
    CLG_TRY_GOTO(ocl_queue_fill(q, b, 0, sizeof seen, &none, sizeof none), out);
    CLG_TRY_GOTO(ocl_kernel_set_buffer(k, 0, b), out);
    CLG_TRY_GOTO(launch_parts(q, k, dim), out);
    CLG_TRY_GOTO(ocl_queue_read(q, b, 0, seen, sizeof seen, true), out);
    for (uint32_t i = 0; i < N_ITEMS; i++)
        *out_works = *out_works && seen[i] == expected(i % N_PER_DIM, i / N_PER_DIM);
out:
    ocl_kernel_free(k);
    return status;
}

static clg_status test_parts(ocl_context *ocl, bool *out_works)
{
    ocl_queue *q = NULL;
    ocl_buffer *b = NULL;
    *out_works = true;
    clg_status status = ocl_queue_create_own(ocl, &q);
    if (status == CLG_OK)
        status = ocl_buffer_create(ocl, N_ITEMS * sizeof(uint32_t), OCL_BUFFER_DEVICE, &b);
    for (uint32_t dim = 0; dim < 2 && status == CLG_OK; dim++)
        status = test_dim(ocl, q, b, dim, out_works);
    ocl_queue_free(q);
    ocl_buffer_free(b);
    return status;
}

/* Finds the result of an earlier process. */
static bool recall(ocl_context *ocl, bool *out_works)
{
    char *stored;
    size_t n_bytes;
    if (!ocl_context_recall(ocl, RECORD, &stored, &n_bytes)) return false;
    const bool is_valid = n_bytes == 1;
    if (is_valid) *out_works = stored[0] == '1';
    memory_free(stored);
    return is_valid;
}

clg_status ocl_parts_work(ocl_context *ocl, bool *out_works)
{
    const int known = atomic_load(&ocl->parts_state);
    *out_works = known == PARTS_WORK;
    if (known != PARTS_UNKNOWN) return CLG_OK;
    if (!recall(ocl, out_works)) {
        CLG_TRY(test_parts(ocl, out_works));
        ocl_context_remember(ocl, RECORD, "whether launches can be divided", *out_works ? "1" : "0",
                             1);
    }
    if (!*out_works)
        log_write(CLG_LOG_WARNING,
                  "'%s' computes wrong global offsets: launches of kernels are not divided, "
                  "however long they take",
                  context_record(ocl)->name);
    atomic_store(&ocl->parts_state, *out_works ? PARTS_WORK : PARTS_FAIL);
    return CLG_OK;
}
