/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how launches are divided into parts, without a device: the parts of NDRanges, GEMMs, copies
 * and fills cover the whole once, and their number follows from estimated and measured times.
 */
#include "support/unit.h"

#include "session/run/launch_limit.h"

#include <string.h>

static const device_rates slow = {.flops_per_ns = 1.0, .bytes_per_ns = 2.0, .units = 2};
static const uint64_t limit_ns = 1000000;

static uint64_t no_clock(void) { return 0; }

static launch_limit make_limit(uint64_t ns)
{
    launch_limit l;
    launch_limit_init(&l, &(launch_budget){ns, slow}, no_clock);
    return l;
}

static step kernel_step(const char *source, uint32_t n_dims, const uint64_t *groups,
                        const uint64_t *local)
{
    step s = {.kind = STEP_KERNEL, .kernel = {.source = source, .entry = source}, .n_dims = n_dims};
    for (uint32_t i = 0; i < n_dims; i++) {
        s.local[i] = local[i];
        s.global[i] = groups[i] * local[i];
    }
    return s;
}

/* Checks that the parts cover the groups of dimension `dim` in order, and that each launch tells
 * its kernel the size of the whole. */
static void check_ranges(const step *s, uint32_t n_parts, uint32_t dim)
{
    const uint32_t other = dim == 0 ? 1 : 0;
    uint64_t next = 0, smallest = UINT64_MAX, largest = 0;
    assert_int_equal(launch_part_ref(s).part, dim + 1);
    for (uint32_t i = 0; i < n_parts; i++) {
        launch_range r;
        launch_part_range(s, (launch_part){i, n_parts}, &r);
        assert_int_equal(r.n_dims, s->n_dims > 1 ? s->n_dims : 2);
        assert_int_equal(r.offset[dim], next);
        assert_int_equal(r.offset[other], s->global[dim]);
        assert_int_equal(r.global[dim] % s->local[dim], 0);
        for (uint32_t k = 0; k < s->n_dims; k++) {
            assert_int_equal(r.local[k], s->local[k]);
            if (k != dim) assert_int_equal(r.global[k], s->global[k]);
        }
        next += r.global[dim];
        smallest = r.global[dim] < smallest ? r.global[dim] : smallest;
        largest = r.global[dim] > largest ? r.global[dim] : largest;
    }
    assert_int_equal(next, s->global[dim]);
    assert_true(smallest > 0 && largest - smallest <= s->local[dim]);
}

TEST(launch_part__kernels)
{
    const uint64_t ones[3] = {1, 1, 1}, local[3] = {16, 4, 1};
    step s = kernel_step("gemm_simt", 1, (uint64_t[]){17}, local);
    assert_int_equal(launch_max_parts(&s, 2), 9); /* two groups each */
    assert_int_equal(launch_count_parts(&s, 100, 2), 9);
    for (uint32_t n = 2; n <= 9; n++) check_ranges(&s, n, 0);
    s = kernel_step("gemm_simt", 3, (uint64_t[]){5, 7, 3}, local);
    assert_int_equal(launch_max_parts(&s, 2), 7); /* along one dimension only */
    for (uint32_t n = 2; n <= 7; n++) check_ranges(&s, n, 1);
    s = kernel_step("gemm_simt", 3, (uint64_t[]){4, 2, 9}, ones);
    check_ranges(&s, 4, 2);
    s = kernel_step("gemm_simt", 2, (uint64_t[]){6, 6}, local);
    check_ranges(&s, 5, 1);
}

TEST(launch_part__what_is_not_divided)
{
    const uint64_t local[3] = {16, 4, 1}, groups[3] = {8, 8, 8};
    step s = kernel_step("unique", 2, groups, local); /* not marked */
    assert_int_equal(launch_max_parts(&s, 1), 1);
    s.kernel.body = "generated";
    assert_int_equal(launch_max_parts(&s, 1), 8);
    s.local[0] = s.local[1] = 0; /* the driver chooses */
    assert_int_equal(launch_max_parts(&s, 1), 1);
    s = kernel_step("gemm_simt", 1, (uint64_t[]){3}, local);
    assert_int_equal(launch_max_parts(&s, 4), 1); /* all groups run at once */
}

static uint64_t cell(const ocl_gemm *g, int64_t matrix, int64_t row)
{
    return (uint64_t)(g->offset_c + matrix * g->stride_c + row * g->ldc);
}

/* Checks that the parts of a GEMM compute each row of each matrix once, from its own operands. */
static void check_gemm(gemm_problem p, uint32_t n_parts)
{
    static uint8_t seen[4096];
    size_t n_rows = 0;
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < n_parts; i++) {
        ocl_gemm g = ocl_gemm_of(&p);
        launch_part_gemm((launch_part){i, n_parts}, &g);
        assert_true(g.m > 0 && g.batch > 0);
        for (int64_t b = 0; b < g.batch; b++)
            for (int64_t row = 0; row < g.m; row++, n_rows++) {
                const uint64_t at = cell(&g, b, row) - (uint64_t)p.c.offset_elems;
                const int64_t matrix = (int64_t)at / p.stride_c,
                              whole_row = (int64_t)at % p.stride_c / p.ldc;
                assert_int_equal(at % (uint64_t)p.ldc, 0);
                assert_int_equal(seen[matrix * p.m + whole_row]++, 0);
                assert_int_equal(g.offset_a + b * g.stride_a + row * (g.trans_a ? 1 : g.lda),
                                 p.a.offset_elems + matrix * p.stride_a +
                                     whole_row * (p.trans_a ? 1 : p.lda));
                assert_int_equal(g.offset_b + b * g.stride_b,
                                 p.b.offset_elems + matrix * p.stride_b);
            }
    }
    assert_int_equal(n_rows, p.batch * p.m);
}

TEST(launch_part__gemm)
{
    gemm_problem p = {.a = {.offset_elems = 5},
                      .b = {.offset_elems = 6},
                      .c = {.offset_elems = 7},
                      .m = 200,
                      .n = 3,
                      .k = 10,
                      .lda = 11,
                      .ldb = 3,
                      .ldc = 4,
                      .batch = 5,
                      .stride_a = 2200,
                      .stride_b = 0,
                      .stride_c = 800};
    step s = {.kind = STEP_BLAS_GEMM, .gemm = p};
    assert_int_equal(launch_max_parts(&s, 1), 15); /* 64 rows or more each */
    assert_int_equal(launch_count_parts(&s, 4, 1), 4);
    assert_int_equal(launch_count_parts(&s, 6, 1), 10);
    assert_int_equal(launch_count_parts(&s, 99, 1), 15);
    for (uint32_t n = 1; n <= 5; n++) check_gemm(p, n);
    check_gemm(p, 10);
    check_gemm(p, 15);
    p.trans_a = true;
    p.lda = 220;
    check_gemm(p, 15);
}

TEST(launch_part__bytes)
{
    step s = {.kind = STEP_FILL, .size_bytes = (5u << 20) + 24};
    assert_int_equal(launch_max_parts(&s, 1), 5);
    for (uint32_t n = 1; n <= 5; n++) {
        uint64_t next = 0;
        for (uint32_t i = 0; i < n; i++) {
            const part_range r = launch_part_bytes(&s, (launch_part){i, n});
            assert_int_equal(r.first, next);
            assert_true(r.count > 0 && r.first % 4096 == 0);
            next += r.count;
        }
        assert_int_equal(next, s.size_bytes);
    }
    s.size_bytes = 100;
    assert_int_equal(launch_max_parts(&s, 1), 1);
}

/* ---- how many parts -------------------------------------------------------------------------- */

TEST(launch_limit__estimates)
{
    launch_limit l = make_limit(limit_ns), none = make_limit(0);
    step s = kernel_step("gemm_simt", 1, (uint64_t[]){1000}, (uint64_t[]){64});
    assert_int_equal(launch_limit_parts(&l, &s), 1); /* unknown */
    s.flops = 3.5e6;
    assert_int_equal(launch_limit_parts(&l, &s), 4);
    s.bytes = 12e6; /* 6 ms, longer than the arithmetic */
    assert_int_equal(launch_limit_parts(&l, &s), 6);
    s.flops = 1e30;
    assert_int_equal(launch_limit_parts(&l, &s), 500);
    assert_int_equal(launch_limit_parts(&none, &s), 1);
    s.flops = 1e6;
    s.bytes = 2e6;
    assert_int_equal(launch_limit_parts(&l, &s), 1); /* the limit itself is allowed */
    s.global[0] = 64;                                /* a group: half of the device */
    assert_int_equal(launch_count_parts(&s, 9, slow.units), 1);
    assert_true(launch_limit_time_ns(&l, &s) == 2e6);
    step copy = {.kind = STEP_COPY, .size_bytes = 5000000};
    assert_int_equal(launch_limit_parts(&l, &copy), 4); /* of 5 ms: 1 MiB or more each */
    launch_limit_deinit(&l);
}

TEST(launch_limit__measured_times_win)
{
    launch_limit l = make_limit(limit_ns);
    step s = kernel_step("gemm_simt", 1, (uint64_t[]){1000}, (uint64_t[]){64}), other = s;
    s.flops = 3e6;
    other.flops = 3e6 + 1;
    assert_int_equal(launch_limit_parts(&l, &s), 3);
    assert_ok(launch_limit_note(&l, &s, 3, 100000)); /* 0.3 ms in all */
    assert_int_equal(l.epoch, 2);
    assert_int_equal(launch_limit_parts(&l, &s), 1);
    assert_int_equal(launch_limit_parts(&l, &other), 4);
    assert_ok(launch_limit_note(&l, &s, 1, 900000)); /* within the limit: nothing to learn */
    assert_int_equal(l.epoch, 2);
    assert_ok(launch_limit_note(&l, &s, 1, 4500000));
    assert_int_equal(l.epoch, 3);
    assert_int_equal(launch_limit_parts(&l, &s), 5);
    assert_ok(launch_limit_note(&l, &s, 5, 700000)); /* shorter than before: the longest counts */
    assert_int_equal(l.epoch, 3);
    assert_int_equal(launch_limit_parts(&l, &s), 5);
    launch_limit_deinit(&l);
}

TEST(launch_limit__reports_once)
{
    launch_limit l = make_limit(limit_ns);
    step s = kernel_step("unique", 1, (uint64_t[]){1000}, (uint64_t[]){64});
    bool is_new;
    s.flops = 0.5e6;
    assert_ok(launch_limit_report(&l, &s, 1, &is_new));
    assert_false(is_new);
    s.flops = 3e6;
    assert_ok(launch_limit_report(&l, &s, 1, &is_new));
    assert_true(is_new);
    assert_ok(launch_limit_report(&l, &s, 1, &is_new));
    assert_false(is_new);
    launch_limit_deinit(&l);
}

TEST(launch_limit__does_not_grow)
{
    launch_limit l = make_limit(limit_ns);
    step s = kernel_step("gemm_simt", 1, (uint64_t[]){1000}, (uint64_t[]){64});
    for (int i = 0; i < 10000; i++) {
        s.flops = 1e6 + i;
        assert_ok(launch_limit_note(&l, &s, 1, 2 * limit_ns));
        assert_true(l.measured.count <= 4096);
    }
    assert_int_equal(launch_limit_parts(&l, &s), 2);
    launch_limit_deinit(&l);
}
