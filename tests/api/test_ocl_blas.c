/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares GEMMs by CLBlast with a reference in double: transposed operands, leading dimensions
 * larger than the rows, offsets, contiguous and other batches. Inputs are small integers, so that
 * every product and sum is exact in float: results must be equal.
 */
/* ctest: timeout 900 */
#include "support/unit.h"

#include "support/fixtures/contiguous_gemm.h"
#include "support/fixtures/ocl_platforms.h"

#include "base/files.h"
#include "base/memory.h"

#include <string.h>

static ocl_buffer *upload(ocl_context *ocl, ocl_queue *q, const float *data, size_t n)
{
    ocl_buffer *b;
    assert_ok(ocl_buffer_create(ocl, n * sizeof *data, OCL_BUFFER_DEVICE, &b));
    assert_ok(ocl_queue_write(q, b, 0, data, n * sizeof *data, true));
    return b;
}

static float *numbers(size_t n, unsigned seed)
{
    float *x = memory_zalloc(n, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 24) % 9 - 4);
    }
    return x;
}

/* Returns the number of elements from the start of the buffer to the end of the last row, padding
 * of the row included. */
static size_t extent(int64_t offset, int64_t batch, int64_t stride, int64_t rows, int64_t ld)
{
    return (size_t)(offset + (batch - 1) * stride + rows * ld);
}

static void reference(const ocl_gemm *g, const float *a, const float *b, float *c)
{
    for (int64_t i = 0; i < g->batch; i++)
        for (int64_t m = 0; m < g->m; m++)
            for (int64_t n = 0; n < g->n; n++) {
                const float *x = a + g->offset_a + i * g->stride_a,
                            *y = b + g->offset_b + i * g->stride_b;
                float *z = c + g->offset_c + i * g->stride_c + m * g->ldc + n;
                double sum = 0.0;
                for (int64_t k = 0; k < g->k; k++)
                    sum += (double)x[g->trans_a ? k * g->lda + m : m * g->lda + k] *
                           (double)y[g->trans_b ? n * g->ldb + k : k * g->ldb + n];
                *z = (float)((double)g->alpha * sum + (double)g->beta * (double)*z);
            }
}

static void check_gemm(ocl_context *ocl, ocl_queue *q, ocl_gemm g)
{
    const size_t n_a = extent(g.offset_a, g.batch, g.stride_a, g.trans_a ? g.k : g.m, g.lda);
    const size_t n_b = extent(g.offset_b, g.batch, g.stride_b, g.trans_b ? g.n : g.k, g.ldb);
    const size_t n_c = extent(g.offset_c, g.batch, g.stride_c, g.m, g.ldc);
    float *a = numbers(n_a, 1), *b = numbers(n_b, 2), *expected = numbers(n_c, 3),
          *got = numbers(n_c, 3);
    const gemm_problem p = {.m = g.m,
                            .n = g.n,
                            .k = g.k,
                            .lda = g.lda,
                            .ldb = g.ldb,
                            .ldc = g.ldc,
                            .batch = g.batch,
                            .stride_a = g.stride_a,
                            .stride_b = g.stride_b,
                            .stride_c = g.stride_c,
                            .trans_a = g.trans_a,
                            .trans_b = g.trans_b,
                            .alpha = g.alpha,
                            .beta = g.beta};
    assert_true(ocl_blas_accepts(&p));
    g.a = upload(ocl, q, a, n_a);
    g.b = upload(ocl, q, b, n_b);
    g.c = upload(ocl, q, got, n_c);
    assert_ok(ocl_queue_gemm(q, &g));
    assert_ok(ocl_queue_read(q, g.c, 0, got, n_c * sizeof *got, true));
    reference(&g, a, b, expected);
    for (size_t i = 0; i < n_c; i++)
        if (got[i] != expected[i])
            fail_msg("%lld x %lld x %lld, batch %lld: element %zu is %g in place of %g",
                     (long long)g.m, (long long)g.n, (long long)g.k, (long long)g.batch, i,
                     (double)got[i], (double)expected[i]);
    ocl_buffer_free(g.a);
    ocl_buffer_free(g.b);
    ocl_buffer_free(g.c);
    memory_free(a);
    memory_free(b);
    memory_free(expected);
    memory_free(got);
}

/* Checks, on a queue whose commands may run concurrently, that a GEMM waits for the (long) copy
 * that writes its operand, and that the copy of its result waits for the GEMM. */
static void check_between_copies(ocl_context *ocl, ocl_queue *q)
{
    const size_t ahead = (ocl_context_caps(ocl)->quirks & QUIRK_SLOW_LAUNCH) ? 1 << 10 : 1 << 23;
    ocl_gemm g = contiguous_gemm(17, 13, 5, 1, false, false);
    g.offset_a = (int64_t)ahead;
    const size_t n_a = ahead + 17 * 5, n_c = 17 * 13;
    float *a = numbers(n_a, 1), *b = numbers(5 * 13, 2), *zeros = memory_zalloc(n_a, sizeof *zeros);
    float expected[17 * 13] = {0}, got[17 * 13];
    assert_non_null(zeros);
    ocl_buffer *from = upload(ocl, q, a, n_a), *to = upload(ocl, q, zeros, n_c);
    g.a = upload(ocl, q, zeros, n_a);
    g.b = upload(ocl, q, b, 5 * 13);
    g.c = upload(ocl, q, zeros, n_c);
    reference(&g, a, b, expected);
    for (int round = 0; round < 3; round++) {
        assert_ok(ocl_queue_write(q, g.a, 0, zeros, n_a * sizeof *zeros, true));
        assert_ok(ocl_queue_fork(q, true));
        ocl_queue_order(q, 0, 0);
        assert_ok(ocl_queue_copy(q, from, 0, g.a, 0, n_a * sizeof *a));
        ocl_queue_order(q, 1, 1);
        assert_ok(ocl_queue_gemm(q, &g));
        ocl_queue_order(q, 2, 2);
        assert_ok(ocl_queue_copy(q, g.c, 0, to, 0, sizeof got));
        assert_ok(ocl_queue_join(q));
        assert_ok(ocl_queue_read(q, to, 0, got, sizeof got, true));
        assert_memory_equal(got, expected, sizeof got);
    }
    ocl_buffer *const buffers[] = {from, to, g.a, g.b, g.c};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) ocl_buffer_free(buffers[i]);
    memory_free(a);
    memory_free(b);
    memory_free(zeros);
}

static void check_gemms(ocl_context *ocl, void *user)
{
    size_t *n_checked = user;
    ocl_queue *q;
    const int64_t tile = (ocl_context_caps(ocl)->quirks & QUIRK_SLOW_LAUNCH)
                             ? 32
                             : 128; /* simulators take minutes */
    assert_true(ocl_blas_available(ocl));
    assert_ok(ocl_queue_create(ocl, &q));
    /* Few shapes: compiling each of CLBlast's kernels takes seconds on a CPU. */
    for (int trans = 0; trans < 4; trans++)
        check_gemm(ocl, q, contiguous_gemm(17, 13, 5, 1, trans & 1, trans & 2));
    check_gemm(ocl, q, contiguous_gemm(1, 1, 1, 1, false, false));
    check_between_copies(ocl, q);
    check_gemm(ocl, q, contiguous_gemm(tile, 64, 32, 3, false, false));

    ocl_gemm gaps = contiguous_gemm(9, 10, 11, 1, false, false);
    gaps.lda += 3, gaps.ldb += 5, gaps.ldc += 7;
    gaps.offset_a = 2, gaps.offset_b = 4, gaps.offset_c = 6;
    gaps.alpha = 2.0f, gaps.beta = -1.0f;
    check_gemm(ocl, q, gaps);

    /* GemmStridedBatched of CLBlast 1.5.3 computes this case wrongly: sizes are multiples of the
     * tile, one matrix is used by all batches, and there is an offset. */
    ocl_gemm repeated = contiguous_gemm(tile, tile, 64, 3, false, false);
    repeated.stride_b = 0;
    check_gemm(ocl, q, repeated);
    ocl_gemm shifted = contiguous_gemm(tile, tile, 64, 2, false, false);
    shifted.offset_a = 128;
    check_gemm(ocl, q, shifted);
    ocl_gemm apart = contiguous_gemm(tile, 64, 32, 2, false, false);
    apart.stride_c += 64;
    check_gemm(ocl, q, apart);
    ocl_queue_free(q);
    *n_checked += 1;
}

TEST_WITH(blas__gemms_are_exact, NULL, ocl_platforms_leaks)
{
    size_t n_checked = 0;
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = NULL}, check_gemms, &n_checked);
    assert_true(n_checked > 0);
}

static void check_samples(ocl_context *ocl, void *user)
{
    (void)user;
    ocl_queue *q;
    ocl_sample *samples;
    size_t n;
    assert_ok(ocl_queue_create(ocl, &q));
    ocl_queue_set_tag(q, 5);
    check_gemm(ocl, q, contiguous_gemm(17, 13, 5, 1, false, false));
    assert_ok(ocl_queue_take_samples(q, &samples, &n));
    assert_int_equal(n, 5); /* three writes, the GEMM, a read */
    for (size_t i = 0; i < n; i++)
        assert_true(samples[i].tag == 5 && samples[i].start_ns <= samples[i].end_ns);
    memory_free(samples);
    ocl_counters counters;
    ocl_context_counters(ocl, &counters);
    assert_int_equal(counters.blas_calls, 1);
    ocl_queue_free(q);
}

TEST_WITH(blas__gemms_have_time_stamps, NULL, ocl_platforms_leaks)
{
    (void)ocl_platforms_each(&(ocl_context_options){.profiling = true}, check_samples, NULL);
}

TEST_WITH(blas__refuses_what_it_cannot_do, NULL, ocl_platforms_leaks)
{
    const gemm_problem good = {.m = 4, .n = 5, .k = 6, .lda = 6, .ldb = 5, .ldc = 5, .batch = 1};
    assert_true(ocl_blas_accepts(&good));
    gemm_problem p = good;
    p.k = 0;
    assert_false(ocl_blas_accepts(&p));
    p = good;
    p.lda = 5;
    assert_false(ocl_blas_accepts(&p));
    p.trans_a = true; /* now rows of 4 */
    assert_true(ocl_blas_accepts(&p));
    p = good;
    p.m = (int64_t)1 << 40;
    assert_false(ocl_blas_accepts(&p));
    p = good;
    p.batch = 2; /* the results of two batches would overlap */
    assert_false(ocl_blas_accepts(&p));
    p.stride_c = 20;
    assert_true(ocl_blas_accepts(&p));
}

TEST(blas__batches_what_is_dense)
{
    const gemm_problem good = {.m = 4,
                               .n = 5,
                               .k = 6,
                               .lda = 6,
                               .ldb = 5,
                               .ldc = 5,
                               .batch = 2,
                               .stride_a = 24,
                               .stride_b = 30,
                               .stride_c = 20};
    assert_true(ocl_blas_batches(&good));
    gemm_problem p = good;
    p.batch = 1;
    assert_false(ocl_blas_batches(&p));
    p = good;
    p.stride_b = 0;
    assert_false(ocl_blas_batches(&p));
    p = good;
    p.a.offset_elems = 24;
    assert_false(ocl_blas_batches(&p));
}

int main(void)
{
    ocl_platforms_show_all();
    return test_run_all();
}
