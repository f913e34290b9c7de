/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how GEMMs are classified for trials of CLBlast: which properties distinguish classes, and
 * the small GEMM that represents each class.
 */
#include "support/unit.h"

#include "support/fixtures/contiguous_gemm.h"

#include "ocl/helper/trial.h"

static bool same_class(ocl_gemm a, ocl_gemm b)
{
    ocl_gemm small;
    const hash128 x = trial_gemm_class(&a, 0, &small), y = trial_gemm_class(&b, 0, &small);
    return hash128_equal(x, y);
}

TEST(class__of_sizes)
{
    const ocl_gemm g = contiguous_gemm(33, 45, 77, 1, false, false);
    assert_true(same_class(g, contiguous_gemm(35, 47, 79, 1, false, false)));
    assert_true(same_class(g, contiguous_gemm(3, 5, 7, 1, false, false)));
    assert_false(same_class(g, contiguous_gemm(34, 45, 77, 1, false, false)));
    assert_false(same_class(g, contiguous_gemm(33, 48, 77, 1, false, false)));
    assert_false(same_class(g, contiguous_gemm(33, 45, 128, 1, false, false)));
    /* m n k below 64^3, and not below it */
    assert_true(same_class(contiguous_gemm(63, 63, 65, 1, false, false), g));
    assert_false(same_class(contiguous_gemm(65, 63, 65, 1, false, false), g));
    assert_true(same_class(contiguous_gemm(64, 64, 64, 1, false, false),
                           contiguous_gemm(64, 64, 448, 1, false, false)));
    assert_false(same_class(contiguous_gemm(64, 64, 64, 1, false, false),
                            contiguous_gemm(64, 64, 576, 1, false, false)));
    /* so large that CLBlast never uses its direct kernel */
    assert_true(same_class(contiguous_gemm(2049, 2049, 2049, 1, false, false),
                           contiguous_gemm(4097, 8191, 12345, 1, false, false)));
    assert_true(same_class(contiguous_gemm(3, 5, 65535, 1, false, false),
                           contiguous_gemm(3, 5, 17477, 1, false, false)));
    assert_false(same_class(contiguous_gemm(1, 1, 65537, 1, false, false),
                            contiguous_gemm(1, 1, 65535, 1, false, false)));
}

TEST(class__of_operands)
{
    const ocl_gemm g = contiguous_gemm(32, 48, 64, 1, false, false);
    ocl_gemm x = contiguous_gemm(32, 48, 64, 1, true, false);
    assert_false(same_class(g, x));
    assert_false(same_class(contiguous_gemm(32, 48, 64, 1, false, true), x));
    x = g;
    x.ldc += 3;
    assert_false(same_class(g, x));
    x = g;
    x.offset_b = 4;
    assert_false(same_class(g, x));
    ocl_gemm y = x;
    y.offset_b = 5;
    assert_true(same_class(y, x));
    x = g;
    x.beta = 1;
    assert_false(same_class(g, x));
    x = g;
    x.alpha = 3;
    assert_true(same_class(g, x));
}

TEST(class__of_batches)
{
    ocl_gemm small;
    const ocl_gemm g = contiguous_gemm(32, 48, 64, 9, false, false);
    assert_true(blas_is_batched(&g));
    assert_int_equal(blas_n_calls(&g), 1);
    assert_true(same_class(g, contiguous_gemm(32, 48, 64, 3, false, false)));
    assert_false(same_class(g, contiguous_gemm(32, 48, 64, 1, false, false)));
    (void)trial_gemm_class(&g, 0, &small);
    assert_int_equal(small.batch, 2);
    assert_true(blas_is_batched(&small));

    ocl_gemm shared = g; /* the batch shares one matrix b: one call per GEMM */
    shared.stride_b = 0;
    assert_int_equal(blas_n_calls(&shared), 9);
    (void)trial_gemm_class(&shared, 0, &small);
    assert_int_equal(small.batch, 1);
    assert_int_equal(small.offset_a, 0);
    (void)trial_gemm_class(&shared, 1, &small);
    assert_int_equal(small.offset_b, 0);
    assert_true(small.offset_a > 0 && small.offset_c > 0);
}

/* Checks that the small GEMM is of the class that it represents, and needs little time and memory.
 */
static void check_small(const ocl_gemm *g)
{
    ocl_gemm small;
    int64_t n_elems[3];
    (void)trial_gemm_class(g, 0, &small);
    assert_true(small.m > 0 && small.m <= g->m);
    assert_true(small.n > 0 && small.n <= g->n);
    assert_true(small.k > 0 && small.k <= g->k);
    blas_extents(&small, n_elems);
    assert_true(n_elems[0] + n_elems[1] + n_elems[2] <= (INT64_C(66) << 20));
    if ((double)small.m * (double)small.n * (double)small.k > 3e10)
        fail_msg("%lld x %lld x %lld stand for %lld x %lld x %lld", (long long)small.m,
                 (long long)small.n, (long long)small.k, (long long)g->m, (long long)g->n,
                 (long long)g->k);
    const double n_own = 2.0 * (double)(g->m * g->k + g->k * g->n + g->m * g->n);
    if (n_own <= (double)(64 << 20)) assert_true(same_class(*g, small));
}

TEST(class__small_problems)
{
    static const int64_t dims[] = {1,   2,    3,    8,    37,   64,   96,   255,   256,    257,
                                   511, 1024, 1536, 2047, 2048, 2053, 4096, 10000, 100000, 3000000};
    enum { N = sizeof dims / sizeof *dims };
    for (int m = 0; m < N; m++)
        for (int n = 0; n < N; n++)
            for (int k = 0; k < N; k++)
                for (int kind = 0; kind < 3; kind++) {
                    ocl_gemm g = contiguous_gemm(dims[m], dims[n], dims[k], 1 + 4 * (kind == 1),
                                                 kind > 0, kind > 1);
                    if (kind == 2) {
                        g.lda += 8;
                        g.offset_c = 1;
                    }
                    check_small(&g);
                }
}
