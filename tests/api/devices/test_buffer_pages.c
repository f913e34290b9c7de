/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers in memory of the process for which huge pages are asked (ocl/buffer/buffer_pages.h): they
 * are read, written, mapped and used by kernels as others are, and their memory is released when
 * the last command has used it.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"

#include "base/memory.h"
#include "base/system.h"
#include "ocl/buffer/buffer_pages.h"
#include "session/context_handle.h"

#include <clgraph/opencl.h>

#include <string.h>

enum { LARGE = (2 << 20) + 12344, PART = 4096 };

static uint8_t pattern(size_t i) { return (uint8_t)(i * 7 + i / 251); }

/* ---- the memory ------------------------------------------------------------------------------ */

TEST(buffer_pages__memory_is_aligned_and_zeroed)
{
    static const size_t sizes[] = {1, 4096, 4097, LARGE, (size_t)5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *memory = sys_map_huge(sizes[i]);
        if (!memory) { /* a system without such a request */
            skip();
            return;
        }
        assert_int_equal((uintptr_t)memory % ((size_t)2 << 20), 0);
        assert_int_equal(memory[0], 0);
        assert_int_equal(memory[sizes[i] - 1], 0);
        memset(memory, 255, sizes[i]);
        sys_unmap_huge(memory);
    }
    assert_null(sys_map_huge(SIZE_MAX));
    assert_null(sys_map_huge(SIZE_MAX / 2));
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Returns whether the system and the context's device have such buffers. */
static bool has_pages(const ocl_context *ocl)
{
    const device_caps *caps = ocl_context_caps(ocl);
    void *memory = sys_map_huge(1);
    if (!memory) return false;
    sys_unmap_huge(memory);
    return caps->kind == CLG_DEVICE_CPU && caps->zero_copy_align_bytes > 0 &&
           (caps->family == PLATFORM_POCL || caps->family == PLATFORM_INTEL_CPU);
}

/* Writes, copies, maps and reads a buffer of `size_bytes`, at both ends. */
static void use(ocl_context *ocl, size_t size_bytes, ocl_buffer_flags flags, bool is_paged)
{
    static uint8_t out[PART], in[PART];
    ocl_queue *q;
    ocl_buffer *b;
    void *mapped;
    const size_t last = size_bytes - PART;
    ocl_platforms_expect_no_pages(); /* of the buffers before */
    for (size_t i = 0; i < PART; i++) out[i] = pattern(i + size_bytes);
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_buffer_create(ocl, size_bytes, flags, &b));
    assert_int_equal(buffer_pages_n_live(), is_paged);
    assert_ok(ocl_queue_write(q, b, last, out, PART, true));
    assert_ok(ocl_queue_copy(q, b, last, b, 0, PART));
    assert_ok(ocl_queue_map(q, b, 0, PART, false, true, &mapped));
    assert_memory_equal(mapped, out, PART);
    for (size_t i = 0; i < PART; i++) ((uint8_t *)mapped)[i] ^= 255;
    assert_ok(ocl_queue_unmap(q, b, mapped));
    assert_ok(ocl_queue_read(q, b, 0, in, PART, true));
    for (size_t i = 0; i < PART; i++) assert_int_equal(in[i], out[i] ^ 255);
    assert_ok(ocl_queue_read(q, b, last, in, PART, true));
    assert_memory_equal(in, out, PART);
    ocl_buffer_free(b);
    ocl_queue_free(q);
}

/* Runs a kernel that reads and writes such a buffer. */
static void compute(ocl_context *ocl)
{
    float y[PART];
    ocl_queue *q;
    for (int i = 0; i < PART; i++) y[i] = (float)i;
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_platforms_axpy(ocl, q, "pages", 2.0f, PART, 8, y));
    for (int i = 0; i < PART; i++) assert_true(y[i] == 2.0f * (float)i + 5);
    ocl_queue_free(q);
}

static void use_buffers(clg_context *context)
{
    ocl_context *ocl = context->current->ocl;
    const bool has = has_pages(ocl);
    use(ocl, LARGE, OCL_BUFFER_DEVICE, has);
    use(ocl, LARGE, OCL_BUFFER_HOST_VISIBLE, has);
    use(ocl, 2 * PART, OCL_BUFFER_DEVICE, false);
    buffer_pages_use_from(1);
    use(ocl, 2 * PART, OCL_BUFFER_HOST_VISIBLE, has);
    compute(ocl);
    buffer_pages_use_from(0);
    use(ocl, 2 * PART, OCL_BUFFER_HOST_VISIBLE, false);
    ocl_platforms_expect_no_pages();
}

TEST(buffer_pages__buffers_work_as_others)
{
    clg_context *context = ocl_platforms_open_stored();
    use_buffers(context);
    clg_context_free(context);
}

/* A buffer is freed while commands that use it are in flight: they end rightly. */
TEST(buffer_pages__memory_outlives_commands_in_flight)
{
    static uint8_t out[LARGE], in[LARGE];
    clg_context *context = ocl_platforms_open_stored();
    ocl_context *ocl = context->current->ocl;
    ocl_queue *q;
    for (size_t i = 0; i < LARGE; i++) out[i] = pattern(i);
    assert_ok(ocl_queue_create(ocl, &q));
    for (int round = 0; round < 20; round++) {
        ocl_buffer *from, *to;
        assert_ok(ocl_buffer_create(ocl, LARGE, OCL_BUFFER_DEVICE, &from));
        assert_ok(ocl_buffer_create(ocl, LARGE, OCL_BUFFER_DEVICE, &to));
        assert_ok(ocl_queue_write(q, from, 0, out, LARGE, true));
        for (int i = 0; i < 4; i++) assert_ok(ocl_queue_copy(q, from, 0, to, 0, LARGE));
        ocl_buffer_free(from);
        memset(in, 0, LARGE);
        assert_ok(ocl_queue_read(q, to, 0, in, LARGE, false));
        ocl_buffer_free(to);
        assert_ok(ocl_queue_finish(q));
        assert_memory_equal(in, out, LARGE);
    }
    ocl_queue_free(q);
    clg_context_free(context);
    ocl_platforms_expect_no_pages();
}

int main(void)
{
    ocl_platforms_show_pocl();
    return test_run_all();
}
