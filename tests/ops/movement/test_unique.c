/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares Unique with a linear search for each row among the distinct rows found so far. It only
 * selects, so results must be exact.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct problem {
    clg_dtype dtype;
    int64_t outer, n, inner;
    bool flat, sorted;
    unsigned outputs; /* bit set of requested outputs: 1 indices, 2 inverse indices, 4 counts */
    const double *x;
} problem;

static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b)) return (int)isnan(a) - (int)isnan(b);
    return (a > b) - (a < b);
}

static int compare_rows(const problem *p, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < p->inner; i++) {
            int c = compare_numbers(p->x[(o * p->n + a) * p->inner + i],
                                    p->x[(o * p->n + b) * p->inner + i]);
            if (c) return c;
        }
    return 0;
}

static void unique(problem p)
{
    const int64_t n = p.flat ? p.outer * p.n * p.inner : p.n;
    const int64_t dims[] = {p.outer, p.n, p.inner};
    double *first = run_node_zeros(n), *inverse = run_node_zeros(n), *counts = run_node_zeros(n);
    double *moved = run_node_zeros(n);
    int64_t found = 0;
    run_node r;
    if (p.flat) p.outer = p.inner = 1, p.n = n;
    for (int64_t j = 0; j < n; j++) {
        int64_t at = 0;
        while (at < found && compare_rows(&p, (int64_t)first[at], j) != 0) at++;
        if (at == found) first[found++] = (double)j;
        inverse[j] = (double)at;
        counts[at]++;
    }
    for (int64_t at = 0; at < found; at++) /* the position of each input row in the output */
        for (int64_t other = 0; other < found; other++)
            moved[at] += p.sorted ? compare_rows(&p, (int64_t)first[other], (int64_t)first[at]) < 0
                                  : other < at;
    double *y = run_node_zeros(p.outer * found * p.inner), *indices = run_node_zeros(found),
           *sizes = run_node_zeros(found);
    for (int64_t at = 0; at < found; at++) {
        const int64_t to = (int64_t)moved[at];
        indices[to] = first[at];
        sizes[to] = counts[at];
        for (int64_t o = 0; o < p.outer; o++)
            for (int64_t i = 0; i < p.inner; i++)
                y[(o * found + to) * p.inner + i] =
                    p.x[(o * p.n + (int64_t)first[at]) * p.inner + i];
    }
    for (int64_t j = 0; j < n; j++) inverse[j] = moved[(int64_t)inverse[j]];
    run_node_start(&r, NULL, "Unique", 11);
    if (!p.flat) run_node_int(&r, "axis", -2);
    run_node_int(&r, "sorted", p.sorted);
    run_node_input(&r, p.dtype, 3, dims, p.x);
    if (p.flat)
        run_node_expect(&r, p.dtype, DIMS(found), y);
    else
        run_node_expect(&r, p.dtype, DIMS(p.outer, found, p.inner), y);
    const double *others[] = {indices, inverse, sizes};
    for (int k = 0; k < 3; k++) {
        if (p.outputs >> k & 1)
            run_node_expect(&r, CLG_INT64, DIMS(k == 1 ? n : found), others[k]);
        else if (p.outputs >> k)
            run_node_expect_absent(&r);
    }
    run_node_check(&r, 0);
}

/* Returns random values, of about `kinds` distinct ones. */
static double *repeated(int64_t n, int kinds, bool is_unsigned)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = floor((x[i] + 1) * 0.5 * kinds) - (is_unsigned ? 0 : kinds / 2);
    return x;
}

static void unique_all(clg_dtype dtype, int64_t outer, int64_t n, int64_t inner, int kinds)
{
    const bool is_unsigned = dtype == CLG_UINT8 || dtype == CLG_UINT32 || dtype == CLG_UINT64;
    const double *x = repeated(outer * n * inner, kinds, is_unsigned);
    for (int form = 0; form < 4; form++)
        unique((problem){dtype, outer, n, inner, form & 1, form & 2, 7, x});
}

TEST(unique__sizes)
{
    unique_all(CLG_FLOAT32, 1, 1, 1, 3);
    unique_all(CLG_FLOAT32, 1, 15, 1, 4);
    unique_all(CLG_FLOAT32, 1, 16, 1, 1);
    unique_all(CLG_FLOAT32, 1, 17, 1, 100);
    unique_all(CLG_FLOAT32, 1, 1000, 1, 50);
    unique_all(CLG_FLOAT32, 2, 257, 3, 2);
    unique_all(CLG_FLOAT32, 3, 33, 2, 3);
    unique_all(CLG_FLOAT32, 2, 7, 0, 3);
    unique_all(CLG_FLOAT32, 2, 0, 3, 3);
}

TEST(unique__larger_than_a_block)
{
    const double *x = repeated(9001, 300, false);
    unique((problem){CLG_INT32, 1, 9001, 1, true, true, 7, x});
    unique((problem){CLG_INT32, 1, 9001, 1, true, false, 7, x});
}

TEST(unique__outputs)
{
    const double *x = repeated(60, 9, false);
    for (unsigned outputs = 0; outputs < 8; outputs++)
        unique((problem){CLG_FLOAT32, 3, 10, 2, true, outputs % 2, outputs, x});
}

TEST(unique__dtypes)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_FLOAT64, CLG_INT8,   CLG_UINT8, CLG_INT16,
                                       CLG_INT32,   CLG_INT64,   CLG_UINT32, CLG_UINT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) unique_all(dtypes[i], 1, 40, 2, 4);
}

TEST(unique__special_numbers)
{
    const double x[] = {NAN, 0.0, INFINITY, -0.0, NAN, -INFINITY, 1, INFINITY, 0x1p-149, NAN};
    unique((problem){CLG_FLOAT32, 1, 10, 1, true, true, 7, x});
    unique((problem){CLG_FLOAT32, 1, 10, 1, true, false, 7, x});
    unique((problem){CLG_FLOAT32, 1, 5, 2, false, true, 7, x});
}

TEST_GROUP(run_node_open, run_node_close)
