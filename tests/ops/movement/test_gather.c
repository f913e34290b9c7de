/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests Gather, GatherElements, GatherND and Pad, and operators whose results depend on positions
 * (Range, EyeLike, Trilu, OneHot), with coordinates computed in the test. Elements are numbered,
 * and results must be exact, except those of Range in floating point.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

/* Returns indices into a dimension of n, some of them negative. */
static double *indices_into(int64_t count, int64_t n)
{
    double *x = run_node_zeros(count);
    for (int64_t i = 0; i < count; i++) x[i] = (double)((i * 7 + 3) % n - (i % 3 == 0 ? n : 0));
    return x;
}

static int64_t place_of(double index, int64_t n)
{
    return (int64_t)(index < 0 ? index + (double)n : index);
}

/* ---- Gather ---------------------------------------------------------------------------------- */

static void check_gather(clg_dtype dtype, clg_dtype index_dtype, int64_t outer, int64_t n,
                         int64_t inner, int index_rank, const int64_t *index_dims)
{
    run_node r;
    const int64_t picks = run_node_count(index_rank, index_dims), dims[] = {outer, n, inner};
    int64_t out[CLG_MAX_RANK] = {outer};
    const double *x = run_node_numbered(outer * n * inner, dtype == CLG_INT8 ? 127 : 65521),
                 *index = indices_into(picks, n);
    double *y = run_node_zeros(outer * picks * inner);
    for (int i = 0; i < index_rank; i++) out[1 + i] = index_dims[i];
    out[1 + index_rank] = inner;
    for (int64_t i = 0; i < outer * picks * inner; i++) {
        const int64_t row = i / inner, o = row / picks;
        y[i] = x[(o * n + place_of(index[row % picks], n)) * inner + i % inner];
    }
    run_node_start(&r, NULL, "Gather", 13);
    run_node_int(&r, "axis", -2);
    run_node_input(&r, dtype, 3, dims, x);
    run_node_input(&r, index_dtype, index_rank, index_dims, index);
    run_node_expect(&r, dtype, 2 + index_rank, out, y);
    run_node_check(&r, 0);
}

TEST(gather__gather)
{
    check_gather(CLG_FLOAT32, CLG_INT64, 1, 11, 768, DIMS(2, 5)); /* embeddings */
    check_gather(CLG_FLOAT32, CLG_INT32, 3, 7, 1, DIMS(13));      /* elements */
    check_gather(CLG_INT8, CLG_INT64, 2, 5, 3, DIMS(2, 2, 2));
    check_gather(CLG_INT64, CLG_INT64, 2, 5, 17, 0, NULL); /* one index */
    check_gather(CLG_FLOAT16, CLG_INT32, 1, 4, 33, DIMS(0));
}

/* A constant scalar index makes a view. An index out of range is reported while planning if it is
 * known then, otherwise by the run. */
TEST(gather__known_index)
{
    run_node r;
    const double *x = run_node_numbered(24, 100), bad = 3, good = -1;
    double *y = run_node_zeros(8);
    for (int i = 0; i < 8; i++) y[i] = -x[i / 4 * 12 + 8 + i % 4];
    run_node_start(&r, NULL, "Gather", 13);
    run_node_int(&r, "axis", 1);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){2, 3, 4}, x);
    run_node_constant(&r, CLG_INT64, 0, NULL, &good);
    run_node_then(&r, "Neg");
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 4}, y);
    run_node_check(&r, 0);
    for (int known = 0; known < 2; known++) {
        run_node_start(&r, NULL, "Gather", 13);
        run_node_int(&r, "axis", 1);
        run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){2, 3, 4}, x);
        (known ? run_node_constant : run_node_input)(&r, CLG_INT64, 0, NULL, &bad);
        run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 4}, y);
        run_node_refused(&r, CLG_ERROR_DATA, "out of range");
    }
}

static void check_elements(clg_dtype dtype, int64_t axis, int rank, const int64_t *dims,
                           const int64_t *index_dims)
{
    run_node r;
    const int at_axis = (int)(axis < 0 ? axis + rank : axis);
    const int64_t n = run_node_count(rank, index_dims);
    const double *x = run_node_numbered(run_node_count(rank, dims), 127),
                 *index = indices_into(n, dims[at_axis]);
    double *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, from = 0, stride = 1;
        for (int d = rank - 1; d >= 0; d--) {
            const int64_t p = d == at_axis ? place_of(index[i], dims[d]) : rest % index_dims[d];
            rest /= index_dims[d];
            from += p * stride;
            stride *= dims[d];
        }
        y[i] = x[from];
    }
    run_node_start(&r, NULL, "GatherElements", 13);
    run_node_int(&r, "axis", axis);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_input(&r, CLG_INT64, rank, index_dims, index);
    run_node_expect(&r, dtype, rank, index_dims, y);
    run_node_check(&r, 0);
}

TEST(gather__elements)
{
    check_elements(CLG_FLOAT32, 0, DIMS(9), (int64_t[]){31});
    check_elements(CLG_FLOAT32, 1, DIMS(3, 5), (int64_t[]){2, 7});
    check_elements(CLG_INT8, -3, DIMS(3, 5, 7), (int64_t[]){4, 5, 6});
    check_elements(CLG_INT64, 5, DIMS(2, 2, 2, 2, 2, 3), (int64_t[]){2, 2, 2, 2, 2, 2});
}

/* Gathers from [2, 3, 4, 5] by pairs, without and with a batch dimension. */
TEST(gather__nd)
{
    run_node r;
    const int64_t dims[] = {2, 3, 4, 5};
    const double *x = run_node_numbered(120, 1000);
    const double pairs[] = {0, 0, 1, 2, -1, -1, 1, -3, 0, 1, -2, 2};
    for (int batch = 0; batch < 2; batch++) {
        const int64_t index_dims[] = {2, 3, 2}, out[] = {2, 3, 5, 5}, inner = batch ? 5 : 20;
        double *y = run_node_zeros(6 * inner);
        for (int k = 0; k < 6; k++) {
            const int64_t i = place_of(pairs[2 * k], batch ? 3 : 2),
                          j = place_of(pairs[2 * k + 1], batch ? 4 : 3);
            const int64_t from = batch ? k / 3 * 60 + i * 20 + j * 5 : i * 60 + j * 20;
            for (int64_t e = 0; e < inner; e++) y[k * inner + e] = x[from + e];
        }
        run_node_start(&r, NULL, "GatherND", 13);
        run_node_int(&r, "batch_dims", batch);
        run_node_input(&r, CLG_FLOAT32, 4, dims, x);
        run_node_input(&r, CLG_INT64, 3, index_dims, pairs);
        run_node_expect(&r, CLG_FLOAT32, batch ? 3 : 4, batch ? out : (int64_t[]){2, 3, 4, 5}, y);
        run_node_check(&r, 0);
    }
    run_node_start(&r, NULL, "GatherND", 13);
    run_node_input(&r, CLG_FLOAT32, 4, dims, x);
    run_node_input(&r, CLG_INT64, 2, (int64_t[]){1, 2}, (double[]){0, 3});
    run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){1, 4, 5}, x);
    run_node_refused(&r, CLG_ERROR_DATA, "out of range");
}

/* ---- Pad ------------------------------------------------------------------------------------- */

/* Returns the input position for position i of a padded dimension of n, or -1 for none. Reflects
 * repeatedly, one border at a time. */
static int64_t padded(int64_t i, int64_t n, const char *mode)
{
    if (strcmp(mode, "constant") == 0) return i >= 0 && i < n ? i : -1;
    if (strcmp(mode, "edge") == 0) return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (strcmp(mode, "wrap") == 0) {
        while (i < 0) i += n;
        return i % n;
    }
    while (n > 1 && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
    return n == 1 ? 0 : i;
}

static void check_pad(clg_dtype dtype, const char *mode, int rank, const int64_t *dims,
                      const double *pads, double fill)
{
    run_node r;
    int64_t out[CLG_MAX_RANK];
    const int64_t n_pads = 2 * rank;
    for (int i = 0; i < rank; i++) out[i] = dims[i] + (int64_t)(pads[i] + pads[rank + i]);
    const int64_t n = run_node_count(rank, out);
    const double *x = run_node_numbered(run_node_count(rank, dims), 127);
    double *y = run_node_zeros(n);
    for (int64_t at = 0; at < n; at++) {
        int64_t rest = at, from = 0, stride = 1;
        bool exists = true;
        for (int d = rank - 1; d >= 0; d--) {
            const int64_t removed = pads[d] < 0 ? -(int64_t)pads[d] : 0;
            const int64_t left =
                dims[d] - removed + (pads[rank + d] < 0 ? (int64_t)pads[rank + d] : 0);
            const int64_t p =
                padded(rest % out[d] - (pads[d] > 0 ? (int64_t)pads[d] : 0), left, mode);
            rest /= out[d];
            exists = exists && p >= 0;
            from += (p + removed) * stride;
            stride *= dims[d];
        }
        y[at] = exists ? x[from] : fill;
    }
    run_node_start(&r, NULL, "Pad", 19);
    run_node_string(&r, "mode", mode);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, CLG_INT64, 1, &n_pads, pads);
    if (fill != 0) run_node_input(&r, dtype, 0, NULL, &fill);
    run_node_expect(&r, dtype, rank, out, y);
    run_node_check(&r, 0);
}

TEST(gather__pad)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    for (size_t m = 0; m < COUNT(modes); m++) {
        check_pad(CLG_FLOAT32, modes[m], DIMS(5), (double[]){3, 4}, 0);
        check_pad(CLG_FLOAT32, modes[m], DIMS(2, 3, 4, 33), (double[]){0, 0, 1, 2, 0, 0, 2, 1}, 0);
        check_pad(CLG_INT8, modes[m], DIMS(4, 5), (double[]){-1, 2, 3, -2}, 0);
        check_pad(CLG_INT64, modes[m], DIMS(2, 3), (double[]){5, 7, 4, 9},
                  0); /* longer than the input */
    }
    check_pad(CLG_FLOAT32, "constant", DIMS(3, 20), (double[]){1, 2, 0, 0}, 7.5);
    check_pad(CLG_FLOAT16, "constant", DIMS(3, 20), (double[]){1, 2, 0, 30}, -3);
    check_pad(CLG_BOOL, "constant", DIMS(0, 2), (double[]){1, 0, 1, 1}, 1);
    check_pad(CLG_FLOAT32, "constant", DIMS(3), (double[]){0, 0}, 0);
}

/* Opset 18 names axes; opset 2 has attributes. */
TEST(gather__pad_forms)
{
    run_node r;
    const double x[] = {1, 2, 3, 4}, pads[] = {1, 0}, axis = -1, y[] = {9, 1, 2, 9, 3, 4}, nine = 9;
    run_node_start(&r, NULL, "Pad", 18);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 2}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, pads);
    run_node_constant(&r, CLG_FLOAT32, 0, NULL, &nine);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &axis);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Pad", 2);
    run_node_ints(&r, "pads", 4, (int64_t[]){0, 1, 0, 0});
    run_node_float(&r, "value", 9);
    run_node_input(&r, CLG_FLOAT16, 2, (int64_t[]){2, 2}, x);
    run_node_expect(&r, CLG_FLOAT16, 2, (int64_t[]){2, 3}, y);
    run_node_check(&r, 0);
    run_node_start(&r, NULL, "Pad", 13);
    run_node_string(&r, "mode", "reflect");
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){0, 2}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){4}, (double[]){1, 0, 0, 0});
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "no element");
}

/* ---- tensors computed from positions --------------------------------------------------------- */

static void check_range(clg_dtype dtype, double start, double limit, double delta, int64_t n)
{
    run_node r;
    double *y = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) y[i] = start + (double)i * delta;
    const bool narrow = dtype == CLG_FLOAT16 || dtype == CLG_BFLOAT16;
    run_node_start(&r, NULL, "Range", narrow ? 27 : 13);
    run_node_input(&r, dtype, 0, NULL, &start);
    run_node_input(&r, dtype, 0, NULL, &limit);
    run_node_input(&r, dtype, 0, NULL, &delta);
    run_node_expect(&r, dtype, 1, &n, y);
    run_node_check(&r, narrow ? 8e-3 : 1e-6); /* half an ULP of bfloat16's 8 bits */
}

TEST(gather__range)
{
    run_node r;
    const double zero = 0, ten = 10;
    check_range(CLG_INT64, 3, -8, -3, 4);
    check_range(CLG_INT32, 5, 5, 1, 0);
    check_range(CLG_INT32, 5, 2, 1, 0);
    check_range(CLG_FLOAT32, 0.5, 3, 0.25, 10);
    check_range(CLG_INT16, -3, 9000, 1, 9003); /* on the device */
    check_range(CLG_FLOAT32, 0, 5000, 0.5, 10000);
    check_range(CLG_FLOAT16, 1, -2, -0.25, 12);
    check_range(CLG_FLOAT16, 0, 1250, 0.25, 5000);
    check_range(CLG_BFLOAT16, -4, 2528, 0.5, 5064);
    run_node_start(&r, NULL, "Range", 27);
    run_node_int(&r, "stash_type", CLG_FLOAT16);
    run_node_input(&r, CLG_FLOAT16, 0, NULL, &zero);
    run_node_input(&r, CLG_FLOAT16, 0, NULL, &ten);
    run_node_input(&r, CLG_FLOAT16, 0, NULL, &ten);
    run_node_expect(&r, CLG_FLOAT16, 1, (int64_t[]){1}, &zero);
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "stash_type is 10");
    run_node_start(&r, NULL, "Range", 13);
    run_node_input(&r, CLG_INT64, 0, NULL, &zero);
    run_node_input(&r, CLG_INT64, 0, NULL, &ten);
    run_node_input(&r, CLG_INT64, 0, NULL, &zero);
    run_node_expect(&r, CLG_INT64, 1, (int64_t[]){1}, &zero);
    run_node_refused(&r, CLG_ERROR_SHAPE, "delta");
}

TEST(gather__eye)
{
    static const clg_dtype dtypes[] = {CLG_FLOAT32, CLG_FLOAT16, CLG_BFLOAT16, CLG_BOOL, CLG_INT64};
    const double *x = run_node_zeros(35);
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        const int64_t k = (int64_t)d - 2;
        double *y = run_node_zeros(35);
        run_node r;
        for (int64_t i = 0; i < 5; i++)
            if (i + k >= 0 && i + k < 7) y[i * 7 + i + k] = 1;
        run_node_start(&r, NULL, "EyeLike", 13);
        run_node_int(&r, "dtype", dtypes[d]);
        run_node_int(&r, "k", k);
        run_node_input(&r, CLG_INT32, 2, (int64_t[]){5, 7}, x);
        run_node_expect(&r, dtypes[d], 2, (int64_t[]){5, 7}, y);
        run_node_check(&r, 0);
    }
}

TEST(gather__trilu)
{
    const double *x = run_node_numbered(2 * 5 * 7, 1000);
    for (int upper = 0; upper < 2; upper++) {
        for (int k = -6; k <= 8; k += 2) {
            run_node r;
            const double diagonal = k;
            double *y = run_node_zeros(2 * 5 * 7);
            for (int64_t i = 0; i < 2 * 5 * 7; i++) {
                const int64_t row = i / 7 % 5, above = i % 7 - row;
                if (upper ? above >= k : above <= k) y[i] = x[i];
            }
            run_node_start(&r, NULL, "Trilu", 14);
            run_node_int(&r, "upper", upper);
            run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){2, 5, 7}, x);
            if (k != 0) run_node_input(&r, CLG_INT64, 0, NULL, &diagonal);
            run_node_expect(&r, CLG_FLOAT32, 3, (int64_t[]){2, 5, 7}, y);
            run_node_check(&r, 0);
        }
    }
}

static void check_onehot(clg_dtype index_dtype, clg_dtype dtype, int64_t axis, int64_t depth,
                         const int64_t *out)
{
    run_node r;
    const double index[] = {0, 2, -1, 3, 9, -9}, values[] = {5, 7}, length = (double)depth;
    double *y = run_node_zeros(6 * depth);
    for (int64_t i = 0; i < 6 * depth; i++) {
        const int64_t d = axis == -1 ? i % depth : i / 3 % depth;
        const int64_t at = axis == -1 ? i / depth : i / (3 * depth) * 3 + i % 3;
        y[i] = place_of(index[at], depth) == d ? 7 : 5;
    }
    run_node_start(&r, NULL, "OneHot", 13);
    run_node_int(&r, "axis", axis);
    run_node_input(&r, index_dtype, 2, (int64_t[]){2, 3}, index);
    run_node_input(&r, CLG_INT64, 0, NULL, &length);
    run_node_input(&r, dtype, 1, (int64_t[]){2}, values);
    run_node_expect(&r, dtype, 3, out, y);
    run_node_check(&r, 0);
}

TEST(gather__onehot)
{
    check_onehot(CLG_INT64, CLG_FLOAT32, -1, 4, (int64_t[]){2, 3, 4});
    check_onehot(CLG_FLOAT32, CLG_INT8, 1, 5, (int64_t[]){2, 5, 3});
    check_onehot(CLG_INT32, CLG_INT64, -1, 4, (int64_t[]){2, 3, 4});
}

TEST_GROUP(run_node_open, run_node_close)
