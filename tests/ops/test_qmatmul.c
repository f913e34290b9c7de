/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger and QLinearMatMul against sums in int64. Sums are exact; a requantised number may not differ either, since
 * the scales are powers of two. com.microsoft's products that end in float32 round a few times: 1e-5 of the largest; where they
 * quantise first, a number that lies on a half may go either way: one step of it times the largest of B.
 */
#include "support/run_node.h"

#include <math.h>

static double *bytes(int64_t n, bool is_signed)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++) x[i] = floor((x[i] + 1) * 127.9) - (is_signed ? 128 : 0);
    return x;
}

typedef struct product {
    int64_t batch, m, n, k;
    bool a_signed, b_signed;
    int zeros; /* 0 none, 1 one number each, 2 one a row and a column */
    bool shared_b;
} product;

/* How it is to be tested. */
typedef struct manner {
    const char *way; /* of kernels for CPUs; NULL: any device, any way */
    bool extreme; /* all of A, and of B, is the number furthest from zero points at the other end */
} manner;

/* Numbers of a product: anything, or those of one end of the range. */
static double *numbers(const manner *how, int64_t n, bool is_signed, bool high)
{
    if (!how->extreme) return bytes(n, is_signed);
    double *x = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) x[i] = high ? (is_signed ? 127 : 255) : (is_signed ? -128 : 0);
    return x;
}

static int64_t term(const product *p, const double *a, const double *b, const double *az,
                    const double *bz, int64_t z, int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t t = 0; t < p->k; t++) {
        const double x = a[(z * p->m + i) * p->k + t] - (p->zeros ? az[p->zeros == 2 ? i : 0] : 0);
        const double y = b[((p->shared_b ? 0 : z) * p->k + t) * p->n + j] -
                         (p->zeros ? bz[p->zeros == 2 ? j : 0] : 0);
        sum += (int64_t)(x * y);
    }
    return sum;
}

static void integer_in(product p, manner how)
{
    const clg_dtype ta = p.a_signed ? CLG_INT8 : CLG_UINT8, tb = p.b_signed ? CLG_INT8 : CLG_UINT8;
    const double *a = numbers(&how, p.batch * p.m * p.k, p.a_signed, true),
                 *b = numbers(&how, p.batch * p.k * p.n, p.b_signed, false);
    const double *az = numbers(&how, p.m, p.a_signed, false),
                 *bz = numbers(&how, p.n, p.b_signed, true);
    double *y = run_node_zeros(p.batch * p.m * p.n);
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++)
        y[i] = (double)term(&p, a, b, az, bz, i / p.n / p.m, i / p.n % p.m, i % p.n);
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    r.way = how.way;
    r.way_kernels = CLG_KERNELS_WIDE;
    run_node_input(&r, ta, 3, (int64_t[]){p.batch, p.m, p.k}, a);
    if (p.shared_b)
        run_node_constant(&r, tb, 2, (int64_t[]){p.k, p.n}, b);
    else
        run_node_input(&r, tb, 3, (int64_t[]){p.batch, p.k, p.n}, b);
    if (p.zeros) run_node_input(&r, ta, p.zeros == 2, &p.m, az);
    if (p.zeros) run_node_input(&r, tb, p.zeros == 2, &p.n, bz);
    run_node_expect(&r, CLG_INT32, 3, (int64_t[]){p.batch, p.m, p.n}, y);
    run_node_check(&r, 0);
}

static void linear_in(product p, clg_dtype ty, clg_dtype ts, int fold, manner how)
{
    const clg_dtype ta = p.a_signed ? CLG_INT8 : CLG_UINT8, tb = p.b_signed ? CLG_INT8 : CLG_UINT8;
    const double *a = numbers(&how, p.batch * p.m * p.k, p.a_signed, true),
                 *b = numbers(&how, p.batch * p.k * p.n, p.b_signed, false);
    const double *az = numbers(&how, p.m, p.a_signed, false),
                 *bz = numbers(&how, p.n, p.b_signed, true);
    double *y = run_node_zeros(p.batch * p.m * p.n), *sa = run_node_zeros(p.m + 1),
           *sb = run_node_zeros(p.n + 1);
    const double sy = ldexp(1, fold), zy = 7, low = ty == CLG_INT8 ? -128 : 0, high = low + 255;
    for (int64_t i = 0; i <= p.m; i++) sa[i] = ldexp(1, p.zeros == 2 ? (int)(i % 3) : 0);
    for (int64_t i = 0; i <= p.n; i++) sb[i] = ldexp(1, p.zeros == 2 ? -(int)(i % 2) : 0);
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++) {
        const int64_t row = i / p.n % p.m, column = i % p.n;
        const double sum = (double)term(&p, a, b, az, bz, i / p.n / p.m, row, column);
        y[i] = nearbyint(sum * sa[row] * sb[column] / sy) + zy;
        y[i] = y[i] < low ? low : y[i] > high ? high : y[i];
    }
    run_node r;
    run_node_start(&r, NULL, "QLinearMatMul", ts == CLG_FLOAT32 ? 10 : 21);
    r.way = how.way;
    r.way_kernels = CLG_KERNELS_WIDE;
    run_node_input(&r, ta, 3, (int64_t[]){p.batch, p.m, p.k}, a);
    run_node_input(&r, ts, p.zeros == 2, &p.m, sa);
    run_node_input(&r, ta, p.zeros == 2, &p.m, az);
    if (p.shared_b)
        run_node_constant(&r, tb, 2, (int64_t[]){p.k, p.n}, b);
    else
        run_node_input(&r, tb, 3, (int64_t[]){p.batch, p.k, p.n}, b);
    run_node_input(&r, ts, p.zeros == 2, &p.n, sb);
    run_node_input(&r, tb, p.zeros == 2, &p.n, bz);
    run_node_input(&r, ts, 0, NULL, &sy);
    run_node_input(&r, ty, 0, NULL, &zy);
    run_node_expect(&r, ty, 3, (int64_t[]){p.batch, p.m, p.n}, y);
    run_node_check(&r, 0);
}

static void integer(product p) { integer_in(p, (manner){NULL, false}); }

static void linear(product p, clg_dtype ty, clg_dtype ts, int fold)
{
    linear_in(p, ty, ts, fold, (manner){NULL, false});
}

static void qmatmul__integer(void **state)
{
    (void)state;
    integer((product){1, 1, 1, 1, false, false, 0, false});
    integer((product){1, 5, 17, 33, false, true, 1, false});
    integer((product){3, 4, 16, 7, true, true, 2, false});
    integer((product){2, 7, 37, 300, true, false, 2, true});
    integer((product){2, 3, 5, 0, true, false, 1, false});
    integer((product){0, 3, 5, 2, true, false, 1, false});
}

static void qmatmul__vectors(void **state)
{
    (void)state;
    const double *a = bytes(9, false), *b = bytes(9 * 4, true);
    double y[4] = {0};
    for (int i = 0; i < 36; i++) y[i % 4] += a[i / 4] * b[i];
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, CLG_UINT8, 1, (int64_t[]){9}, a);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){9, 4}, b);
    run_node_expect(&r, CLG_INT32, 1, (int64_t[]){4}, y);
    run_node_check(&r, 0);
}

static void qmatmul__linear(void **state)
{
    (void)state;
    linear((product){1, 1, 1, 4, false, false, 1, false}, CLG_UINT8, CLG_FLOAT32, 9);
    linear((product){2, 6, 19, 31, false, true, 1, false}, CLG_UINT8, CLG_FLOAT32, 11);
    linear((product){2, 6, 19, 31, true, true, 2, false}, CLG_INT8, CLG_FLOAT32, 12);
    linear((product){2, 6, 19, 31, false, true, 1, false}, CLG_UINT8, CLG_FLOAT16, 11);
    linear((product){2, 6, 19, 31, true, true, 2, false}, CLG_INT8, CLG_FLOAT16, 12);
    linear((product){1, 5, 17, 31, true, true, 2, false}, CLG_INT8, CLG_BFLOAT16, 12);
}

/* Each kind of words, with remainders in every direction and sums longer than a block of words. */
static void check_wide(const char *way)
{
    const manner usual = {way, false}, extreme = {way, true};
    const clg_dtype f = CLG_FLOAT32;
    integer_in((product){1, 25, 70, 1100, false, true, 2, true}, usual);
    integer_in((product){2, 101, 37, 66, false, true, 1, false}, usual);
    integer_in((product){1, 3, 1500, 5, false, true, 0, true}, usual);
    integer_in((product){2, 13, 33, 2051, true, false, 2, true}, extreme);
    integer_in((product){2, 7, 31, 1027, false, true, 1, false}, extreme);
    integer_in((product){1, 1, 129, 39, true, false, 2, false}, usual);
    linear_in((product){1, 97, 65, 131, false, true, 2, true}, CLG_UINT8, f, 12, usual);
    linear_in((product){2, 5, 100, 259, true, true, 1, false}, CLG_INT8, f, 13, usual);
    linear_in((product){1, 26, 15, 1030, false, false, 2, true}, CLG_INT8, f, 20, extreme);
}

static void qmatmul__wide_byte(void **state)
{
    (void)state;
    check_wide("qgemm_wide_byte");
}

static void qmatmul__wide_short(void **state)
{
    (void)state;
    check_wide("qgemm_wide_short");
}

static void qmatmul__wide_float(void **state)
{
    (void)state;
    check_wide("qgemm_wide_float");
}

static void qmatmul__refuses(void **state)
{
    (void)state;
    const double x[12] = {0};
    run_node r;
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, CLG_UINT8, 2, (int64_t[]){3, 4}, x);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){3, 4}, x);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){3, 4}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "4 columns");
    run_node_start(&r, NULL, "MatMulInteger", 10);
    run_node_input(&r, CLG_UINT8, 2, (int64_t[]){3, 4}, x);
    run_node_input(&r, CLG_INT8, 2, (int64_t[]){4, 3}, x);
    run_node_input(&r, CLG_UINT8, 1, (int64_t[]){2}, x);
    run_node_expect(&r, CLG_INT32, 2, (int64_t[]){3, 3}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "zero point of A");
}

/* MatMulIntegerToFloat; p.zeros 2: the zero point and scale of B are lists. */
static void to_float(product p, bool bias)
{
    const clg_dtype ta = p.a_signed ? CLG_INT8 : CLG_UINT8, tb = p.b_signed ? CLG_INT8 : CLG_UINT8;
    const double *a = bytes(p.batch * p.m * p.k, p.a_signed),
                 *b = bytes(p.batch * p.k * p.n, p.b_signed);
    const double *bz = bytes(p.n, p.b_signed), *sb = run_node_random(p.n),
                 *add = run_node_random(p.n), sa = 0.0078125, *az = bytes(1, p.a_signed);
    double *y = run_node_zeros(p.batch * p.m * p.n), *row_zeros = run_node_zeros(p.m);
    for (int64_t i = 0; i < p.m; i++) row_zeros[i] = az[0];
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++) {
        const int64_t column = i % p.n;
        const double sum =
            (double)term(&p, a, b, row_zeros, bz, i / p.n / p.m, i / p.n % p.m, column);
        y[i] = sum * sa * sb[p.zeros == 2 ? column : 0] + (bias ? add[column] : 0);
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "MatMulIntegerToFloat", 1);
    run_node_input(&r, ta, 3, (int64_t[]){p.batch, p.m, p.k}, a);
    run_node_input(&r, tb, 3, (int64_t[]){p.batch, p.k, p.n}, b);
    run_node_input(&r, CLG_FLOAT32, 0, NULL, &sa);
    run_node_input(&r, CLG_FLOAT32, p.zeros == 2, &p.n, sb);
    if (p.zeros) {
        run_node_input(&r, ta, 0, NULL, az);
        run_node_input(&r, tb, p.zeros == 2, &p.n, bz);
    } else if (bias) {
        run_node_absent(&r);
        run_node_absent(&r);
    }
    if (bias) run_node_input(&r, CLG_FLOAT32, 1, &p.n, add);
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){p.batch, p.m, p.n}, y);
    run_node_check_scaled(&r, 1e-5, 1000);
}

static void qmatmul__to_float(void **state)
{
    (void)state;
    to_float((product){1, 5, 17, 33, false, true, 1, false}, true);
    to_float((product){2, 4, 35, 20, true, true, 2, false}, true);
    to_float((product){1, 3, 8, 9, false, false, 0, false}, false);
    to_float((product){1, 3, 8, 9, true, false, 0, false}, true);
    to_float((product){0, 3, 8, 9, true, false, 1, false}, true);
}

/* DynamicQuantizeMatMul of numbers between -1 and 1, which 255 steps of 2/255 at most stand for. */
static void dynamic(int64_t m, int64_t k, int64_t n, bool lists, bool bias)
{
    const double *a = run_node_random(m * k), *b = bytes(k * n, true), *bz = bytes(n, true),
                 *add = run_node_random(n);
    double *y = run_node_zeros(m * n), *sb = run_node_zeros(n), low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) sb[i] = ldexp(1, -8 - (int)(i % 2));
    for (int64_t i = 0; i < m * k; i++) {
        low = fmin(low, a[i]);
        high = fmax(high, a[i]);
    }
    const double step = (high - low) / 255, zero = nearbyint(-low / step);
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t column = lists ? i % n : 0;
        y[i] = bias ? add[i % n] : 0;
        for (int64_t t = 0; t < k; t++) {
            const double q = fmin(fmax(nearbyint(a[i / n * k + t] / step) + zero, 0), 255);
            y[i] += (q - zero) * step * (b[t * n + i % n] - bz[column]) * sb[column];
        }
    }
    run_node r;
    run_node_start(&r, "com.microsoft", "DynamicQuantizeMatMul", 1);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){m, k}, a);
    run_node_constant(&r, CLG_INT8, 2, (int64_t[]){k, n}, b);
    run_node_constant(&r, CLG_FLOAT32, lists, &n, sb);
    run_node_constant(&r, CLG_INT8, lists, &n, bz);
    if (bias) run_node_constant(&r, CLG_FLOAT32, 1, &n, add);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){m, n}, y);
    run_node_check_scaled(&r, 2.0 / 255, 1);
}

static void qmatmul__dynamic(void **state)
{
    (void)state;
    dynamic(1, 40, 33, false, false);
    dynamic(7, 19, 20, true, true);
    dynamic(4, 300, 5, false, true);
    dynamic(0, 4, 5, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qmatmul__to_float),   cmocka_unit_test(qmatmul__dynamic),
        cmocka_unit_test(qmatmul__integer),    cmocka_unit_test(qmatmul__vectors),
        cmocka_unit_test(qmatmul__linear),     cmocka_unit_test(qmatmul__wide_byte),
        cmocka_unit_test(qmatmul__wide_short), cmocka_unit_test(qmatmul__wide_float),
        cmocka_unit_test(qmatmul__refuses),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
