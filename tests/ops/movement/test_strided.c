/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests operators that rearrange elements: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth,
 * Concat, Slice and Split. Elements are numbered, so that all differ, and must be exactly at the
 * coordinates that the test computes.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>
#include <string.h>

static int64_t largest_of_dtype(clg_dtype dtype)
{
    return dtype == CLG_BOOL            ? 2
           : clg_dtype_size(dtype) == 1 ? 127
           : dtype == CLG_FLOAT16       ? 2039
                                        : 16777213;
}

/* Compute the coordinates of element `at`, and the index of the element at given coordinates. */
static void places_of(int64_t at, int rank, const int64_t *dims, int64_t *out)
{
    for (int i = rank - 1; i >= 0; i--) {
        out[i] = at % dims[i];
        at /= dims[i];
    }
}

static int64_t at_places(int rank, const int64_t *dims, const int64_t *places)
{
    int64_t at = 0;
    for (int i = 0; i < rank; i++) at = at * dims[i] + places[i];
    return at;
}

/* ---- Transpose ------------------------------------------------------------------------------- */

/* Checks Transpose. after: an operator that consumes the result, and so reads a view in place; or
 * NULL. */
static void check_transpose(clg_dtype dtype, int rank, const int64_t *dims, const int64_t *perm,
                            const char *after)
{
    run_node r;
    int64_t out[CLG_MAX_RANK], to[CLG_MAX_RANK], from[CLG_MAX_RANK];
    const int64_t n = run_node_count(rank, dims);
    const double *x = run_node_numbered(n, largest_of_dtype(dtype));
    double *y = run_node_zeros(n);
    for (int i = 0; i < rank; i++) out[i] = dims[perm ? perm[i] : rank - 1 - i];
    for (int64_t at = 0; at < n; at++) {
        places_of(at, rank, out, to);
        for (int i = 0; i < rank; i++) from[perm ? perm[i] : rank - 1 - i] = to[i];
        y[at] = x[at_places(rank, dims, from)] * (after ? -1 : 1);
    }
    run_node_start(&r, NULL, "Transpose", 13);
    if (perm) run_node_ints(&r, "perm", (size_t)rank, perm);
    run_node_input(&r, dtype, rank, dims, x);
    if (after) run_node_then(&r, after);
    run_node_expect(&r, dtype, rank, out, y);
    run_node_check(&r, 0);
}

TEST(strided__transpose)
{
    check_transpose(CLG_FLOAT32, DIMS(5), NULL, NULL);
    check_transpose(CLG_FLOAT32, 0, NULL, NULL, NULL);
    check_transpose(CLG_FLOAT32, DIMS(1, 7), NULL, NULL);    /* only dimensions of 1 move: a view */
    check_transpose(CLG_FLOAT32, DIMS(3, 5), NULL, NULL);    /* smaller than a tile */
    check_transpose(CLG_FLOAT32, DIMS(16, 16), NULL, NULL);  /* one square */
    check_transpose(CLG_FLOAT32, DIMS(64, 64), NULL, NULL);  /* one tile */
    check_transpose(CLG_FLOAT32, DIMS(65, 131), NULL, NULL); /* tiles and remainders */
    check_transpose(CLG_FLOAT32, DIMS(0, 3), NULL, NULL);
    check_transpose(CLG_INT8, DIMS(67, 35), NULL, NULL);
    check_transpose(CLG_FLOAT16, DIMS(33, 70), NULL, NULL);
    check_transpose(CLG_INT64, DIMS(37, 41), NULL, NULL);
    check_transpose(CLG_FLOAT32, DIMS(2, 3, 17, 19), (int64_t[]){0, 2, 3, 1},
                    NULL); /* channels last */
    check_transpose(CLG_FLOAT32, DIMS(2, 17, 3, 20), (int64_t[]){0, 2, 1, 3},
                    NULL); /* attention heads: a view */
    check_transpose(CLG_FLOAT32, DIMS(2, 17, 3, 20), (int64_t[]){0, 2, 1, 3}, "Neg");
    check_transpose(CLG_FLOAT32, DIMS(2, 3, 2, 3, 2, 3), (int64_t[]){5, 3, 1, 0, 2, 4}, NULL);
    check_transpose(CLG_FLOAT32, DIMS(2, 1, 3, 2, 2, 2, 3, 2), (int64_t[]){7, 5, 3, 1, 0, 2, 4, 6},
                    "Neg");
}

/* ---- Expand, Tile ---------------------------------------------------------------------------- */

static void check_expand(int rank, const int64_t *dims, int n_wanted, const int64_t *wanted,
                         int out_rank, const int64_t *out, const char *after)
{
    run_node r;
    const int64_t n = run_node_count(out_rank, out), length = n_wanted;
    const double *x = run_node_numbered(run_node_count(rank, dims), 16777213);
    double *y = run_node_zeros(n), *sizes = run_node_zeros(n_wanted);
    int64_t places[CLG_MAX_RANK];
    for (int i = 0; i < n_wanted; i++) sizes[i] = (double)wanted[i];
    for (int64_t at = 0; at < n; at++) {
        places_of(at, out_rank, out, places);
        for (int i = 0; i < rank; i++)
            if (dims[i] == 1) places[out_rank - rank + i] = 0;
        y[at] = x[at_places(rank, dims, places + out_rank - rank)] * (after ? -1 : 1);
    }
    run_node_start(&r, NULL, "Expand", 13);
    run_node_input(&r, CLG_FLOAT32, rank, dims, x);
    run_node_constant(&r, CLG_INT64, 1, &length, sizes);
    if (after) run_node_then(&r, after);
    run_node_expect(&r, CLG_FLOAT32, out_rank, out, y);
    run_node_check(&r, 0);
}

TEST(strided__expand)
{
    check_expand(DIMS(3, 1), DIMS(2, 1, 6), DIMS(2, 3, 6), NULL);
    check_expand(DIMS(3, 1), DIMS(3, 40), DIMS(3, 40), "Neg");
    check_expand(0, NULL, DIMS(2, 33), DIMS(2, 33), NULL);
    check_expand(DIMS(4, 3), DIMS(1), DIMS(4, 3), NULL); /* the input's own shape */
    check_expand(DIMS(1, 3), DIMS(0, 3), DIMS(0, 3), NULL);
}

static void check_tile(clg_dtype dtype, int rank, const int64_t *dims, const double *repeats)
{
    run_node r;
    int64_t out[CLG_MAX_RANK], places[CLG_MAX_RANK];
    const int64_t length = rank;
    for (int i = 0; i < rank; i++) out[i] = dims[i] * (int64_t)repeats[i];
    const int64_t n = run_node_count(rank, out);
    const double *x = run_node_numbered(run_node_count(rank, dims), largest_of_dtype(dtype));
    double *y = run_node_zeros(n);
    for (int64_t at = 0; at < n; at++) {
        places_of(at, rank, out, places);
        for (int i = 0; i < rank; i++) places[i] %= dims[i];
        y[at] = x[at_places(rank, dims, places)];
    }
    run_node_start(&r, NULL, "Tile", 13);
    run_node_input(&r, dtype, rank, dims, x);
    run_node_constant(&r, CLG_INT64, 1, &length, repeats);
    run_node_expect(&r, dtype, rank, out, y);
    run_node_check(&r, 0);
}

TEST(strided__tile)
{
    check_tile(CLG_FLOAT32, DIMS(7), (double[]){3});
    check_tile(CLG_FLOAT32, DIMS(2, 3), (double[]){1, 1});
    check_tile(CLG_FLOAT32, DIMS(2, 3), (double[]){2, 0});
    check_tile(CLG_INT8, DIMS(3, 1), (double[]){2, 50});
    check_tile(CLG_FLOAT16, DIMS(2, 3, 4), (double[]){3, 2, 2});
    check_tile(CLG_INT64, DIMS(2, 2, 2, 2, 2, 2), (double[]){2, 2, 2, 2, 2, 2});
}

/* ---- DepthToSpace, SpaceToDepth -------------------------------------------------------------- */

static void check_blocks(const char *mode, int64_t b)
{
    run_node r;
    const int64_t c = 3, deep[] = {2, c * b * b, 4, 5}, wide[] = {2, c, 4 * b, 5 * b};
    const int64_t n = run_node_count(4, deep);
    const double *x = run_node_numbered(n, 16777213);
    double *y = run_node_zeros(n);
    for (int64_t at = 0; at < n; at++) {
        int64_t p[4];
        places_of(at, 4, wide, p);
        const int64_t row = p[2] % b, column = p[3] % b;
        const int64_t channel = strcmp(mode, "CRD") == 0 ? (p[1] * b + row) * b + column
                                                         : (row * b + column) * c + p[1];
        y[at] = x[at_places(4, deep, (int64_t[]){p[0], channel, p[2] / b, p[3] / b})];
    }
    run_node_start(&r, NULL, "DepthToSpace", 13);
    run_node_int(&r, "blocksize", b);
    run_node_string(&r, "mode", mode);
    run_node_input(&r, CLG_FLOAT32, 4, deep, x);
    run_node_expect(&r, CLG_FLOAT32, 4, wide, y);
    run_node_check(&r, 0);
    const bool is_new = strcmp(mode, "DCR") != 0;
    run_node_start(&r, NULL, "SpaceToDepth", is_new ? 28 : 13);
    run_node_int(&r, "blocksize", b);
    if (is_new) run_node_string(&r, "mode", mode);
    run_node_input(&r, CLG_FLOAT32, 4, wide, y);
    run_node_expect(&r, CLG_FLOAT32, 4, deep, x);
    run_node_check(&r, 0);
}

TEST(strided__blocks)
{
    check_blocks("DCR", 1);
    check_blocks("DCR", 2);
    check_blocks("CRD", 3);
    run_node r;
    run_node_start(&r, NULL, "SpaceToDepth", 27);
    run_node_int(&r, "blocksize", 1);
    run_node_string(&r, "mode", "CRD");
    run_node_input(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 1, 1}, (double[]){1});
    run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 1, 1}, (double[]){1});
    run_node_refused(&r, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "mode");
}

/* ---- Concat ---------------------------------------------------------------------------------- */

static void check_concat(clg_dtype dtype, int64_t axis, int rank, const int64_t *dims, int n_parts,
                         const int64_t *parts)
{
    run_node r;
    int64_t out[CLG_MAX_RANK], p[CLG_MAX_RANK], start = 0;
    const int at_axis = (int)(axis < 0 ? axis + rank : axis);
    memcpy(out, dims, (size_t)rank * sizeof out[0]);
    out[at_axis] = 0;
    for (int k = 0; k < n_parts; k++) out[at_axis] += parts[k];
    const int64_t n = run_node_count(rank, out);
    double *y = run_node_numbered(n, largest_of_dtype(dtype));
    run_node_start(&r, NULL, "Concat", 13);
    run_node_int(&r, "axis", axis);
    for (int k = 0; k < n_parts; k++) {
        int64_t in[CLG_MAX_RANK];
        memcpy(in, out, sizeof in);
        in[at_axis] = parts[k];
        const int64_t n_in = run_node_count(rank, in);
        double *x = run_node_zeros(n_in);
        for (int64_t i = 0; i < n_in; i++) {
            places_of(i, rank, in, p);
            p[at_axis] += start;
            x[i] = y[at_places(rank, out, p)];
        }
        start += parts[k];
        run_node_input(&r, dtype, rank, in, x);
    }
    run_node_expect(&r, dtype, rank, out, y);
    run_node_check(&r, 0);
}

TEST(strided__concat)
{
    check_concat(CLG_FLOAT32, 0, DIMS(0), DIMS(3, 4));
    check_concat(CLG_FLOAT32, 0, DIMS(0, 5), DIMS(3, 0, 1, 70));
    check_concat(CLG_FLOAT32, 1, DIMS(6, 0), DIMS(1, 2, 33));
    check_concat(CLG_FLOAT32, -2, DIMS(2, 0, 7), DIMS(5, 2));
    check_concat(CLG_INT8, 1, DIMS(2, 0, 3, 3), DIMS(5, 4, 2));
    check_concat(CLG_BOOL, -1, DIMS(3, 0), DIMS(2, 2));
    check_concat(CLG_INT64, 0, DIMS(0), DIMS(2));
    check_concat(CLG_FLOAT32, 0, DIMS(0, 600, 401),
                 DIMS(1, 1)); /* larger than the driver's copy takes */
}

/* ---- Slice ----------------------------------------------------------------------------------- */

typedef struct slice_case {
    int64_t axis;
    double start, end, step;
    int64_t first, by, n; /* first element, step and count for a dimension of 10 */
} slice_case;

static const slice_case slices[] = {
    {0, 0, 10, 1, 0, 1, 10},     {0, 2, 5, 1, 2, 1, 3},        {0, -3, 100, 1, 7, 1, 3},
    {0, -100, 3, 1, 0, 1, 3},    {0, 1, 9, 3, 1, 3, 3},        {0, 9, 0, -1, 9, -1, 9},
    {0, -1, -100, -2, 9, -2, 5}, {0, 4, 4, 1, 0, 1, 0},        {0, 7, 2, 1, 0, 1, 0},
    {1, 3, -2, 2, 3, 2, 3},      {-1, 8, -9e15, -3, 8, -3, 3}, {1, 0, 9e15, 9e15, 0, 1, 1},
    {-2, 5, 1, -9e15, 5, 1, 1},
};

static void check_slice(const slice_case *c, const char *after)
{
    run_node r;
    const int64_t dims[] = {10, 10};
    const int axis = (int)(c->axis < 0 ? c->axis + 2 : c->axis);
    int64_t out[] = {10, 10};
    out[axis] = c->n;
    const double *x = run_node_numbered(100, 16777213);
    double *y = run_node_zeros(100);
    const double axis_number = (double)c->axis;
    for (int64_t i = 0; i < out[0] * out[1]; i++) {
        int64_t p[2];
        places_of(i, 2, out, p);
        p[axis] = c->first + p[axis] * c->by;
        y[i] = x[at_places(2, dims, p)] * (after ? -1 : 1);
    }
    run_node_start(&r, NULL, "Slice", 13);
    run_node_input(&r, CLG_FLOAT32, 2, dims, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &c->start);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &c->end);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &axis_number);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, &c->step);
    if (after) run_node_then(&r, after);
    run_node_expect(&r, CLG_FLOAT32, 2, out, y);
    run_node_check(&r, 0);
}

TEST(strided__slice)
{
    for (size_t i = 0; i < COUNT(slices); i++) check_slice(&slices[i], i % 2 ? "Neg" : NULL);
}

/* A view of a view of a view, consumed by an operator that needs dense data. */
TEST(strided__views_of_views)
{
    run_node r;
    const double *x = run_node_numbered(6 * 8 * 20, 16777213);
    double *y = run_node_zeros(8 * 3 * 17);
    for (int64_t i = 0; i < 8 * 3 * 17; i++)
        y[i] = x[(1 + 2 * (i / 17 % 3)) * 160 + i / 51 * 20 + 2 + i % 17];
    run_node_start(&r, NULL, "Slice", 13);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){6, 8, 20}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){1, 2});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){6, 19});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){0, -1});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){2}, (double[]){2, 1});
    run_node_then(&r, "Transpose");
    run_node_ints(&r, "perm", 3, (int64_t[]){1, 0, 2});
    run_node_then(&r, "Reshape");
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){-1});
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){8 * 3 * 17}, y);
    run_node_check(&r, 0);
}

/* ---- Split ----------------------------------------------------------------------------------- */

/* Checks y = -part i of [3, 7] along axis 1. */
TEST(strided__split)
{
    static const int64_t sizes[] = {2, 0, 4, 1};
    static const double numbers[] = {2, 0, 4, 1};
    for (int by = 0; by < 3; by++) {
        run_node r;
        int64_t start = 0;
        const double *x = run_node_numbered(21, 16777213);
        const size_t n_parts = by == 2 ? 3 : 4;
        run_node_start(&r, NULL, "Split", by == 0 ? 11 : by == 1 ? 13 : 18);
        run_node_int(&r, "axis", -1);
        if (by == 0) run_node_ints(&r, "split", 4, sizes);
        if (by == 2) run_node_int(&r, "num_outputs", 3);
        run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){3, 7}, x);
        if (by == 1) run_node_constant(&r, CLG_INT64, 1, (int64_t[]){4}, numbers);
        for (size_t k = 0; k < n_parts; k++) {
            const int64_t part = by == 2 ? (k < 2 ? 3 : 1) : sizes[k];
            double *y = run_node_zeros(3 * part);
            for (int64_t i = 0; i < 3 * part; i++) y[i] = x[i / part * 7 + start + i % part];
            run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){3, part}, y);
            start += part;
        }
        run_node_check(&r, 0);
    }
}

/* ---- rejected attributes --------------------------------------------------------------------- */

TEST(strided__refusals)
{
    run_node r;
    const double *x = run_node_numbered(6, 100);
    run_node_start(&r, NULL, "Transpose", 13);
    run_node_ints(&r, "perm", 2, (int64_t[]){0, 0});
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "permutation");
    run_node_start(&r, NULL, "Concat", 13);
    run_node_int(&r, "axis", 2);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "axis");
    run_node_start(&r, NULL, "Slice", 13);
    run_node_input(&r, CLG_FLOAT32, 2, (int64_t[]){2, 3}, x);
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){0});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){1});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){0});
    run_node_constant(&r, CLG_INT64, 1, (int64_t[]){1}, (double[]){0});
    run_node_expect(&r, CLG_FLOAT32, 2, (int64_t[]){1, 3}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "step");
    run_node_start(&r, NULL, "Split", 13);
    run_node_input(&r, CLG_FLOAT32, 1, (int64_t[]){5}, x);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){3}, x);
    run_node_expect(&r, CLG_FLOAT32, 1, (int64_t[]){2}, x);
    run_node_refused(&r, CLG_ERROR_SHAPE, "equal parts");
}

TEST_GROUP(run_node_open, run_node_close)
