/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares GatherBlockQuantized with a lookup and dequantisation in double. Tolerance: float32
 * 1e-6, for products of values that it represents exactly; float16 1e-3, for one rounding.
 */
#include "support/cases/run_node.h"

#include <math.h>

enum { ROWS = 7, BLOCK = 16, PICKS = 6 };

typedef struct lookup {
    clg_dtype data, scales, indices;
    int bits;
    int64_t cols;
    bool zeros;
} lookup;

/* Packs each row of uint8 codes of t->bits bits into bytes, the first code in the low bits. Codes
 * of other dtypes are returned unchanged. */
static const double *packed(const lookup *t, const double *codes, int64_t cols, int64_t *out_bytes)
{
    const int64_t per = t->data == CLG_UINT8 ? 8 / t->bits : 1, bytes = (cols + per - 1) / per;
    double *to = run_node_zeros(ROWS * bytes);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < cols; c++)
            to[r * bytes + c / per] += codes[r * cols + c] * (1 << c % per * t->bits);
    *out_bytes = bytes;
    return to;
}

static double *draw_codes(const lookup *t, int64_t n)
{
    const int count = 1 << t->bits;
    double *x = run_node_random(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = floor((x[i] + 1) / 2.001 * count) - (t->data == CLG_INT4 ? count / 2 : 0);
    return x;
}

static void check(lookup t)
{
    const int64_t blocks = (t.cols + BLOCK - 1) / BLOCK;
    const double index[PICKS] = {0, ROWS - 1, -1, 3, -ROWS, ROWS}; /* the last is out of range */
    const double *codes = draw_codes(&t, ROWS * t.cols), *zeros = draw_codes(&t, ROWS * blocks),
                 *scales = run_node_random(ROWS * blocks);
    double *y = run_node_zeros(PICKS * t.cols);
    for (int64_t i = 0; i < (PICKS - 1) * t.cols; i++) {
        const double requested = index[i / t.cols];
        const int64_t row = (int64_t)requested + (requested < 0 ? ROWS : 0),
                      at = row * blocks + i % t.cols / BLOCK;
        const double zero = t.zeros ? zeros[at] : t.data == CLG_UINT8 ? 1 << (t.bits - 1) : 0;
        y[i] = (codes[row * t.cols + i % t.cols] - zero) * scales[at];
    }
    int64_t bytes, zero_bytes;
    const double *data = packed(&t, codes, t.cols, &bytes),
                 *zero = packed(&t, zeros, blocks, &zero_bytes);
    run_node r;
    run_node_start(&r, "com.microsoft", "GatherBlockQuantized", 1);
    run_node_int(&r, "block_size", BLOCK);
    run_node_int(&r, "bits", t.bits);
    run_node_constant(&r, t.data, DIMS(ROWS, bytes), data);
    run_node_input(&r, t.indices, DIMS(2, PICKS / 2), index);
    run_node_constant(&r, t.scales, DIMS(ROWS, blocks), scales);
    if (t.zeros) run_node_constant(&r, t.data, DIMS(ROWS, zero_bytes), zero);
    run_node_expect(&r, t.scales, DIMS(2, PICKS / 2, t.cols), y);
    run_node_check(&r, t.scales == CLG_FLOAT16 ? 1e-3 : 1e-6);
}

TEST(gather_blocks__looks_up)
{
    check((lookup){CLG_INT4, CLG_FLOAT32, CLG_INT64, 4, 64, false});
    check((lookup){CLG_UINT4, CLG_FLOAT32, CLG_INT32, 4, 48, true});
    check((lookup){CLG_INT4, CLG_FLOAT16, CLG_INT32, 4, 37,
                   true}); /* an incomplete block, odd rows */
    check((lookup){CLG_UINT8, CLG_FLOAT32, CLG_INT64, 4, 96, true});
    check((lookup){CLG_UINT8, CLG_FLOAT32, CLG_INT64, 4, 48,
                   true}); /* three zero points in two bytes */
    check((lookup){CLG_UINT8, CLG_FLOAT32, CLG_INT64, 4, 96, false});
    check((lookup){CLG_UINT8, CLG_FLOAT16, CLG_INT64, 8, 80, true});
    check((lookup){CLG_UINT8, CLG_FLOAT32, CLG_INT64, 2, 32, false});
}

TEST(gather_blocks__refuses)
{
    const double zeros[64] = {0};
    static const struct {
        const char *name;
        int64_t value;
        clg_status status;
        const char *words;
    } cases[] = {{"bits", 3, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "bits 3"},
                 {"block_size", 24, CLG_ERROR_INVALID_MODEL, "block_size 24"},
                 {"gather_axis", 1, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "rows of a table"},
                 {"block_size", 16, CLG_ERROR_SHAPE, "do not fit the table's blocks"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_node r;
        run_node_start(&r, "com.microsoft", "GatherBlockQuantized", 1);
        run_node_int(&r, cases[i].name, cases[i].value);
        run_node_constant(&r, CLG_UINT8, DIMS(2, 16), zeros);
        run_node_input(&r, CLG_INT64, DIMS(1), zeros);
        run_node_constant(&r, CLG_FLOAT32, DIMS(2, 1), zeros);
        run_node_expect(&r, CLG_FLOAT32, DIMS(1, 32), zeros);
        run_node_refused(&r, cases[i].status, cases[i].words);
    }
}

TEST_GROUP(run_node_open, run_node_close)
