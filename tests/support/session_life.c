/* SPDX-License-Identifier: Apache-2.0
 *
 * See session_life.h.
 */
#include "support/session_life.h"
#include "support/session_life_values.h"

#include "support/literals.h"
#include "support/onnx_writer.h"
#include "support/unit.h"

#include "session/stream.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_near(const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
            fail_msg("number %d is %g in place of %g", i, (double)got[i], want[i]);
}

/* ---- Conv, BatchNormalization and Relu, from ONNX ------------------------------------------------------- */

enum { CHANNELS = 3, SIDE = 5, AREA = SIDE * SIDE };

static const float norm[4][CHANNELS] = {
    {1.5f, 0.5f, 2}, {0.25f, -1, 0.5f}, {0.1f, 0.2f, -0.3f}, {1, 4, 0.25f}};
static const float conv_bias[CHANNELS] = {0.5f, -0.25f, 0.125f};

static float conv_weight(int i) { return (float)((i * 7) % 11 - 5) * 0.125f; }

static float picture(int i, int seed) { return (float)((i * 13 + seed * 5) % 17 - 8) * 0.25f; }

static clg_status conv_model(clg_model **out_model)
{
    float w[CHANNELS * 2 * 9];
    ow_model m = {.ir_version = 8, .opset = 13};
    for (int i = 0; i < CHANNELS * 2 * 9; i++) w[i] = conv_weight(i);
    ow_input(&m, "x", CLG_FLOAT32, 4, DIMS(-1, 2, SIDE, SIDE), "N");
    ow_initializer(&m, ow_tensor_raw("w", CLG_FLOAT32, 4, DIMS(CHANNELS, 2, 3, 3), w, sizeof w));
    ow_initializer(&m,
                   ow_tensor_raw("b", CLG_FLOAT32, 1, DIMS(CHANNELS), conv_bias, sizeof conv_bias));
    for (int i = 0; i < 4; i++)
        ow_initializer(&m, ow_tensor_raw(NAMES("scale", "shift", "mean", "var")[i], CLG_FLOAT32, 1,
                                         DIMS(CHANNELS), norm[i], sizeof norm[i]));
    ow_bytes conv = ow_node("Conv", "conv", "x,w,b", "c");
    ow_attribute_ints(&conv, "pads", 4, DIMS(1, 1, 1, 1));
    ow_add_node(&m, conv);
    ow_simple_node(&m, "BatchNormalization", "norm", "c,scale,shift,mean,var", "n");
    ow_simple_node(&m, "Relu", "relu", "n", "y");
    ow_output(&m, "y", CLG_FLOAT32);
    ow_bytes file = ow_finish(&m);
    clg_status status = clg_model_load_memory(file.data, file.n, NULL, out_model);
    ow_free(&file);
    return status;
}

static double conv_at(const float *x, int c, int row, int column)
{
    double sum = (double)conv_bias[c];
    for (int k = 0; k < 2; k++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                int y = row + dy, z = column + dx;
                if (y < 0 || y >= SIDE || z < 0 || z >= SIDE) continue;
                sum += (double)x[k * AREA + y * SIDE + z] *
                       (double)conv_weight(((c * 2 + k) * 3 + dy + 1) * 3 + dx + 1);
            }
    sum = (sum - (double)norm[2][c]) / sqrt((double)norm[3][c] + 1e-5) * (double)norm[0][c] +
          (double)norm[1][c];
    return sum < 0 ? 0 : sum;
}

static void expect_conv(const float *x, const float *y, int n)
{
    for (int i = 0; i < n * CHANNELS * AREA; i++) {
        double want = conv_at(x + i / (CHANNELS * AREA) * 2 * AREA, i / AREA % CHANNELS,
                              i / SIDE % SIDE, i % SIDE);
        expect_near(&y[i], &want, 1);
    }
}

static clg_status use_conv(clg_context *context, clg_session *s)
{
    float x[2 * 2 * AREA], y[2 * CHANNELS * AREA];
    void *mapped;
    (void)context;
    for (int i = 0; i < 2 * 2 * AREA; i++) x[i] = picture(i, 1);
    CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 4, DIMS(1, 2, SIDE, SIDE), x));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_get_output_data(s, "y", y, sizeof y / 2));
    expect_conv(x, y, 1);
    CLG_TRY(clg_session_map_input(s, "x", 4, DIMS(2, 2, SIDE, SIDE), &mapped));
    memcpy(mapped, x, sizeof x);
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_get_output_data(s, "y", y, sizeof y));
    expect_conv(x, y, 2);
    return CLG_OK;
}

/* ---- a weight that is computed, packed, let go, and computed again for a larger map ------------------------- */

enum { N_MAPS = 32, SMALL_SIDE = 2, LARGE_SIDE = 3, LARGE_AREA = LARGE_SIDE * LARGE_SIDE };

static float factor(int i) { return (float)(i % 5 - 2) * 0.25f; }

/* The weights [to, from, 3x3] are 2 * factor(to) * factor(from + 1) * factor(tap + 2). */
static clg_status add_scaled(clg_builder *g)
{
    static const float two = 2;
    float w[N_MAPS * N_MAPS * 9];
    for (int i = 0; i < N_MAPS * N_MAPS * 9; i++)
        w[i] = factor(i / (N_MAPS * 9)) * factor(i / 9 % N_MAPS + 1) * factor(i % 9 + 2);
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 4, DIMS(1, N_MAPS, -1, -1), NULL));
    CLG_TRY(clg_builder_constant(g, "c", CLG_FLOAT32, 4, DIMS(N_MAPS, N_MAPS, 3, 3), w));
    CLG_TRY(clg_builder_constant(g, "two", CLG_FLOAT32, 0, NULL, &two));
    CLG_TRY(clg_builder_node(g, NULL, "Mul", "scale", 2, NAMES("c", "two"), 1, NAMES("w")));
    CLG_TRY(clg_builder_node(g, NULL, "Conv", "conv", 2, NAMES("x", "w"), 1, NAMES("y")));
    CLG_TRY(clg_builder_attribute_ints(g, "pads", 4, DIMS(1, 1, 1, 1)));
    return clg_builder_output(g, "y");
}

static void expect_scaled(const float *x, const float *y, int side)
{
    double sums[LARGE_AREA] = {0}, wants[LARGE_AREA] = {0};
    for (int i = 0; i < N_MAPS * side * side; i++)
        sums[i % (side * side)] += (double)x[i] * (double)factor(i / (side * side) + 1);
    for (int i = 0; i < side * side * 9; i++) {
        const int row = i / 9 / side + i % 9 / 3 - 1, column = i / 9 % side + i % 3 - 1;
        if (row >= 0 && row < side && column >= 0 && column < side)
            wants[i / 9] += 2 * sums[row * side + column] * (double)factor(i % 9 + 2);
    }
    for (int i = 0; i < N_MAPS * side * side; i++) {
        const double want = wants[i % (side * side)] * (double)factor(i / (side * side));
        expect_near(&y[i], &want, 1);
    }
}

static clg_status use_scaled(clg_context *context, clg_session *s)
{
    float x[N_MAPS * LARGE_AREA], y[N_MAPS * LARGE_AREA];
    (void)context;
    for (int i = 0; i < N_MAPS * LARGE_AREA; i++) x[i] = picture(i, 4);
    for (int side = SMALL_SIDE; side <= LARGE_SIDE; side += LARGE_SIDE - SMALL_SIDE) {
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 4, DIMS(1, N_MAPS, side, side), x));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)(N_MAPS * side * side) * sizeof *y));
        expect_scaled(x, y, side);
    }
    return CLG_OK;
}

/* ---- a count that only the device knows ------------------------------------------------------------------- */

static clg_status add_count(clg_builder *g)
{
    static const int64_t zero = 0, one = 1;
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(-1), NULL));
    CLG_TRY(clg_builder_constant(g, "zero", CLG_INT64, 0, NULL, &zero));
    CLG_TRY(clg_builder_constant(g, "one", CLG_INT64, 0, NULL, &one));
    CLG_TRY(clg_builder_node(g, NULL, "Neg", "early", 1, NAMES("x"), 1, NAMES("e")));
    CLG_TRY(clg_builder_node(g, NULL, "ReduceMax", "largest", 1, NAMES("x"), 1, NAMES("m")));
    CLG_TRY(clg_builder_attribute_int(g, "keepdims", 0));
    CLG_TRY(clg_builder_node(g, NULL, "Cast", "count", 1, NAMES("m"), 1, NAMES("n")));
    CLG_TRY(clg_builder_attribute_int(g, "to", CLG_INT64));
    CLG_TRY(
        clg_builder_node(g, NULL, "Range", "range", 3, NAMES("zero", "n", "one"), 1, NAMES("r")));
    CLG_TRY(clg_builder_node(g, NULL, "Gather", "pick", 2, NAMES("e", "r"), 1, NAMES("y")));
    return clg_builder_output(g, "y");
}

/* y = -x[0..largest of x) */
static clg_status use_count(clg_context *context, clg_session *s)
{
    static const float x[2][4] = {{3, 0, 1, 2}, {1, 2, 0.5f, 0}};
    (void)context;
    for (int round = 0; round < 2; round++) {
        const int n = round == 0 ? 3 : 2;
        clg_value *y;
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 1, DIMS(4 - round), x[round]));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output(s, "y", &y));
        assert_int_equal(clg_value_n_elements(y), n);
        for (int i = 0; i < n; i++) assert_true(((float *)clg_value_data(y))[i] == -x[round][i]);
        clg_value_free(y);
    }
    const float beyond = 9; /* an index out of range: the next use must not see this fault */
    CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 1, DIMS(1), &beyond));
    clg_status status = clg_session_run(s);
    assert_int_not_equal(status, CLG_OK);
    return status == CLG_ERROR_DATA ? CLG_OK : status;
}

/* ---- between DequantizeLinear and QuantizeLinear ------------------------------------------------------------- */

enum { BYTES = 2 * 3 * 3 };

static const int8_t pair_weights[4] = {3, -2, 5, 7};
static const float pair_bias[2] = {0.25f, -1};

/* y = (dequantised q)^2, q being the quantised MaxPool of Relu of Conv of x dequantised. */
static clg_status add_pairs(clg_builder *g)
{
    static const float half = 0.5f, quarter = 0.25f;
    static const uint8_t zero = 0, eight = 8;
    static const int8_t none = 0;
    CLG_TRY(clg_builder_input(g, "x", CLG_UINT8, 4, DIMS(-1, 2, 3, 3), NULL));
    CLG_TRY(clg_builder_constant(g, "w", CLG_INT8, 4, DIMS(2, 2, 1, 1), pair_weights));
    CLG_TRY(clg_builder_constant(g, "b", CLG_FLOAT32, 1, DIMS(2), pair_bias));
    CLG_TRY(clg_builder_constant(g, "half", CLG_FLOAT32, 0, NULL, &half));
    CLG_TRY(clg_builder_constant(g, "quarter", CLG_FLOAT32, 0, NULL, &quarter));
    CLG_TRY(clg_builder_constant(g, "zero", CLG_UINT8, 0, NULL, &zero));
    CLG_TRY(clg_builder_constant(g, "eight", CLG_UINT8, 0, NULL, &eight));
    CLG_TRY(clg_builder_constant(g, "none", CLG_INT8, 0, NULL, &none));
    CLG_TRY(clg_builder_node(g, NULL, "DequantizeLinear", "", 3, NAMES("x", "quarter", "eight"), 1,
                             NAMES("xr")));
    CLG_TRY(clg_builder_node(g, NULL, "DequantizeLinear", "", 3, NAMES("w", "quarter", "none"), 1,
                             NAMES("wr")));
    CLG_TRY(clg_builder_node(g, NULL, "Conv", "", 3, NAMES("xr", "wr", "b"), 1, NAMES("c")));
    CLG_TRY(clg_builder_node(g, NULL, "Relu", "", 1, NAMES("c"), 1, NAMES("d")));
    CLG_TRY(clg_builder_node(g, NULL, "MaxPool", "", 1, NAMES("d"), 1, NAMES("e")));
    CLG_TRY(clg_builder_attribute_ints(g, "kernel_shape", 2, DIMS(1, 3)));
    CLG_TRY(clg_builder_node(g, NULL, "QuantizeLinear", "", 3, NAMES("e", "half", "zero"), 1,
                             NAMES("q")));
    CLG_TRY(clg_builder_node(g, NULL, "DequantizeLinear", "", 3, NAMES("q", "half", "zero"), 1,
                             NAMES("qr")));
    CLG_TRY(clg_builder_node(g, NULL, "Mul", "", 2, NAMES("qr", "qr"), 1, NAMES("y")));
    return clg_builder_output(g, "y");
}

/* Number i of y, of an image of its own for each six. */
static double expected_of_pairs(const uint8_t *x, int i)
{
    const int to = i / 3 % 2, row = i % 3;
    double most = 0;
    for (int k = 0; k < 3; k++) {
        double sum = (double)pair_bias[to];
        for (int c = 0; c < 2; c++)
            sum += (x[(i / 6 * 2 + c) * 9 + row * 3 + k] - 8) * 0.0625 * pair_weights[to * 2 + c];
        most = fmax(most, nearbyint(sum / 0.5) * 0.5);
    }
    return most * most;
}

static clg_status use_pairs(clg_context *context, clg_session *s)
{
    uint8_t x[2 * BYTES];
    float y[12];
    (void)context;
    for (int i = 0; i < 2 * BYTES; i++) x[i] = (uint8_t)(i * 5 % 31);
    for (int n = 1; n <= 2; n++) {
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_UINT8, 4, DIMS(n, 2, 3, 3), x));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)(6 * n) * sizeof *y));
        for (int i = 0; i < 6 * n; i++) {
            const double want = expected_of_pairs(x, i);
            expect_near(&y[i], &want, 1);
        }
    }
    return CLG_OK;
}

/* ---- branches, whose steps may be under way together --------------------------------------------------------- */

enum { BRANCHES = 3, WIDE = 5 };

static clg_status add_branches(clg_builder *g)
{
    float w[WIDE * WIDE];
    char names[2][BRANCHES][16];
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, WIDE), NULL));
    for (int b = 0; b < BRANCHES; b++) {
        for (int i = 0; i < 2; i++) (void)snprintf(names[i][b], 16, "%c%d", "ws"[i], b);
        for (int i = 0; i < WIDE * WIDE; i++) w[i] = conv_weight(i + b);
        CLG_TRY(clg_builder_constant(g, names[0][b], CLG_FLOAT32, 2, DIMS(WIDE, WIDE), w));
        CLG_TRY(clg_builder_node(g, NULL, "MatMul", "", 2, NAMES("x", names[0][b]), 1,
                                 NAMES(names[1][b])));
    }
    CLG_TRY(clg_builder_node(g, NULL, "Concat", "", BRANCHES,
                             NAMES(names[1][0], names[1][1], names[1][2]), 1, NAMES("y")));
    CLG_TRY(clg_builder_attribute_int(g, "axis", 0));
    return clg_builder_output(g, "y");
}

static clg_status use_branches(clg_context *context, clg_session *s)
{
    float x[2 * WIDE], y[2 * WIDE * BRANCHES];
    (void)context;
    for (int i = 0; i < 2 * WIDE; i++) x[i] = conv_weight(3 * i);
    for (int n = 1; n <= 2; n++) {
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(n, WIDE), x));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)(n * WIDE * BRANCHES) * sizeof *y));
        for (int i = 0; i < n * WIDE * BRANCHES; i++) {
            const int branch = i / WIDE / n, row = i / WIDE % n;
            double want = 0;
            for (int k = 0; k < WIDE; k++)
                want +=
                    (double)x[row * WIDE + k] * (double)conv_weight(k * WIDE + i % WIDE + branch);
            expect_near(&y[i], &want, 1);
        }
    }
    return CLG_OK;
}

/* ---- a product, by CLBlast where the life says so ------------------------------------------------------------ */

enum { M = 5, K = 4, N = 6 };

static clg_status add_product(clg_builder *g)
{
    float w[K * N];
    for (int i = 0; i < K * N; i++) w[i] = conv_weight(i);
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 2, DIMS(-1, K), NULL));
    CLG_TRY(clg_builder_constant(g, "w", CLG_FLOAT32, 2, DIMS(K, N), w));
    CLG_TRY(clg_builder_node(g, NULL, "MatMul", "product", 2, NAMES("x", "w"), 1, NAMES("p")));
    CLG_TRY(clg_builder_node(g, NULL, "Sigmoid", "bend", 1, NAMES("p"), 1, NAMES("y")));
    return clg_builder_output(g, "y");
}

static void expect_product(const float *x, const float *y, int rows)
{
    for (int i = 0; i < rows * N; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += (double)x[i / N * K + k] * (double)conv_weight(k * N + i % N);
        const double want = 1 / (1 + exp(-sum));
        expect_near(&y[i], &want, 1);
    }
}

static clg_status use_product(clg_context *context, clg_session *s)
{
    float x[M * K], y[M * N];
    (void)context;
    for (int i = 0; i < M * K; i++) x[i] = picture(i, 2);
    for (int rows = M; rows > 0; rows -= 3) {
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(rows, K), x));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)(rows * N) * sizeof *y));
        expect_product(x, y, rows);
    }
    return CLG_OK;
}

/* So many rows that the device reads them where they lie. */
static clg_status use_large_product(clg_context *context, clg_session *s)
{
    enum { ROWS = 5000 };
    static float x[ROWS * K], y[ROWS * N];
    (void)context;
    for (int i = 0; i < ROWS * K; i++) x[i] = picture(i, 5);
    CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 2, DIMS(ROWS, K), x));
    for (int round = 0; round < 2; round++) {
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, sizeof y));
        expect_product(x, y, ROWS);
    }
    return CLG_OK;
}

/* ---- attention spelled in nodes, behind three projections of one input ----------------------------------------- */

enum { WIDTH = 8, HEAD = 4, MOST_PLACES = 5 };

static float projection(int which, int i) { return (float)((i * (7 + which)) % 13 - 6) * 0.0625f; }

/* Batch, places, heads, d of x times weights `w`, turned as `perm` says. */
static clg_status add_heads(clg_builder *g, int which, const int64_t *perm)
{
    const char *const w = NAMES("wq", "wk", "wv")[which], *const p = NAMES("pq", "pk", "pv")[which],
                      *const h = NAMES("hq", "hk", "hv")[which],
                      *const out = NAMES("q", "k", "v")[which];
    float weights[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++) weights[i] = projection(which, i);
    CLG_TRY(clg_builder_constant(g, w, CLG_FLOAT32, 2, DIMS(WIDTH, WIDTH), weights));
    CLG_TRY(clg_builder_node(g, NULL, "MatMul", p, 2, NAMES("x", w), 1, &p));
    CLG_TRY(clg_builder_node(g, NULL, "Reshape", h, 2, NAMES(p, "split"), 1, &h));
    CLG_TRY(clg_builder_node(g, NULL, "Transpose", out, 1, &h, 1, &out));
    return clg_builder_attribute_ints(g, "perm", 4, perm);
}

static clg_status add_attention(clg_builder *g)
{
    const int64_t split[] = {0, 0, WIDTH / HEAD, HEAD};
    static const float scale = 0.5f;
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 3, DIMS(1, -1, WIDTH), NULL));
    CLG_TRY(clg_builder_constant(g, "split", CLG_INT64, 1, DIMS(4), split));
    CLG_TRY(clg_builder_constant(g, "scale", CLG_FLOAT32, 0, NULL, &scale));
    CLG_TRY(add_heads(g, 0, DIMS(0, 2, 1, 3)));
    CLG_TRY(add_heads(g, 1, DIMS(0, 2, 3, 1)));
    CLG_TRY(add_heads(g, 2, DIMS(0, 2, 1, 3)));
    CLG_TRY(clg_builder_node(g, NULL, "MatMul", "qk", 2, NAMES("q", "k"), 1, NAMES("s")));
    CLG_TRY(clg_builder_node(g, NULL, "Mul", "scaled", 2, NAMES("s", "scale"), 1, NAMES("t")));
    CLG_TRY(clg_builder_node(g, NULL, "Softmax", "softmax", 1, NAMES("t"), 1, NAMES("p")));
    CLG_TRY(clg_builder_attribute_int(g, "axis", -1));
    CLG_TRY(clg_builder_node(g, NULL, "MatMul", "sum", 2, NAMES("p", "v"), 1, NAMES("y")));
    return clg_builder_output(g, "y");
}

/* y is [heads, places, d]. */
static double attended(const float *x, int n, int head, int place, int d)
{
    double rows[3][MOST_PLACES][HEAD] = {{{0}}}, sum = 0, y = 0;
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < n * HEAD; i++)
            for (int k = 0; k < WIDTH; k++)
                rows[w][i / HEAD][i % HEAD] +=
                    (double)x[i / HEAD * WIDTH + k] *
                    (double)projection(w, k * WIDTH + head * HEAD + i % HEAD);
    for (int j = 0; j < n; j++) {
        double score = 0;
        for (int k = 0; k < HEAD; k++) score += rows[0][place][k] * rows[1][j][k];
        sum += exp(score / 2);
        y += exp(score / 2) * rows[2][j][d];
    }
    return y / sum;
}

static clg_status use_attention(clg_context *context, clg_session *s)
{
    float x[MOST_PLACES * WIDTH], y[MOST_PLACES * WIDTH];
    (void)context;
    for (int i = 0; i < MOST_PLACES * WIDTH; i++) x[i] = picture(i, 6);
    for (int n = MOST_PLACES; n > 0; n -= 3) {
        CLG_TRY(clg_session_set_input_data(s, "x", CLG_FLOAT32, 3, DIMS(1, n, WIDTH), x));
        CLG_TRY(clg_session_run(s));
        CLG_TRY(clg_session_get_output_data(s, "y", y, (size_t)(n * WIDTH) * sizeof *y));
        for (int i = 0; i < n * WIDTH; i++) {
            const double want = attended(x, n, i / HEAD / n, i / HEAD % n, i % HEAD);
            expect_near(&y[i], &want, 1);
        }
    }
    return CLG_OK;
}

/* ---- state on the device, asynchronously ---------------------------------------------------------------------- */

static clg_status add_state(clg_builder *g)
{
    CLG_TRY(clg_builder_input(g, "x", CLG_FLOAT32, 1, DIMS(4), NULL));
    CLG_TRY(clg_builder_input(g, "state", CLG_FLOAT32, 1, DIMS(4), NULL));
    CLG_TRY(clg_builder_node(g, NULL, "Add", "add", 2, NAMES("state", "x"), 1, NAMES("next")));
    CLG_TRY(clg_builder_node(g, NULL, "Neg", "minus", 1, NAMES("next"), 1, NAMES("y")));
    CLG_TRY(clg_builder_output(g, "next"));
    return clg_builder_output(g, "y");
}

static clg_status run_in_worker(clg_session *s)
{
    CLG_TRY(clg_session_run_async(s));
    return clg_session_wait(s);
}

static clg_status use_state_with(clg_session *s, clg_value *in, clg_value *out)
{
    static const float x[4] = {1, 2, 3, 4};
    float got[4];
    CLG_TRY(clg_value_write(in, x, sizeof x));
    CLG_TRY(clg_session_set_input(s, "x", in));
    CLG_TRY(clg_session_set_input_data(s, "state", CLG_FLOAT32, 1, DIMS(4), (float[4]){0}));
    CLG_TRY(clg_session_link(s, "next", "state"));
    CLG_TRY(clg_session_bind_output(s, "y", out));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(run_in_worker(s));
    CLG_TRY(clg_session_get_output_data(s, "next", got, sizeof got));
    expect_near(got, (double[]){2, 4, 6, 8}, 4);
    CLG_TRY(clg_value_read(out, got, sizeof got));
    expect_near(got, (double[]){-2, -4, -6, -8}, 4);
    CLG_TRY(clg_session_keep_values(s, NULL, 0));
    CLG_TRY(clg_session_run(s));
    CLG_TRY(clg_session_keep_values(s, NAMES(""), 0));
    CLG_TRY(clg_session_get_output_data(s, "next", got, sizeof got) == CLG_ERROR_NOT_FOUND
                ? CLG_OK
                : CLG_ERROR_INTERNAL);
    CLG_TRY(run_in_worker(s));
    CLG_TRY(clg_session_get_output_data(s, "next", got, sizeof got));
    expect_near(got, (double[]){4, 8, 12, 16}, 4);
    return CLG_OK;
}

static clg_status use_state(clg_context *context, clg_session *s)
{
    clg_value *in = NULL, *out = NULL;
    clg_status status = clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(4), &in);
    if (status == CLG_OK) status = clg_value_create_device(context, CLG_FLOAT32, 1, DIMS(4), &out);
    if (status == CLG_OK) status = use_state_with(s, in, out);
    clg_value_free(in);
    clg_value_free(out);
    return status;
}

/* ---- a stream of rows through the product ------------------------------------------------------------------------ */

enum { STREAM_ROWS = 3 * M + 2 };

typedef struct rows {
    float x[STREAM_ROWS * K];
    size_t n_read, n_written;
} rows;

static clg_status read_rows(void *user, clg_stream_batch *batch)
{
    rows *r = user;
    if (batch->n_rows > STREAM_ROWS - r->n_read) batch->n_rows = STREAM_ROWS - r->n_read;
    memcpy(batch->tensors[0].data, r->x + r->n_read * K, batch->n_rows * K * sizeof(float));
    r->n_read += batch->n_rows;
    return CLG_OK;
}

static clg_status write_rows(void *user, clg_stream_batch *batch)
{
    rows *r = user;
    const float *y = batch->tensors[0].data;
    assert_int_equal(batch->first_row, r->n_written);
    for (size_t i = 0; i < batch->n_rows * N; i++) {
        double sum = 0;
        for (size_t k = 0; k < K; k++)
            sum += (double)r->x[(r->n_written + i / N) * K + k] *
                   (double)conv_weight((int)(k * N + i % N));
        const double want = 1 / (1 + exp(-sum));
        expect_near(&y[i], &want, 1);
    }
    r->n_written += batch->n_rows;
    return CLG_OK;
}

static clg_status use_stream_with(clg_session *s, stream_memory memory)
{
    const stream_settings settings = {.batch = M, .depth = 2, .memory = memory};
    clg_stream *stream;
    rows r = {.n_read = 0};
    for (int i = 0; i < STREAM_ROWS * K; i++) r.x[i] = picture(i, 3);
    CLG_TRY(stream_create((clg_session *[]){s, s}, 2, &settings, &stream));
    clg_status status = stream_run(stream, read_rows, write_rows, &r);
    if (status == CLG_OK) assert_int_equal(r.n_written, STREAM_ROWS);
    stream_free(stream);
    return status;
}

static clg_status use_stream(clg_context *context, clg_session *s)
{
    (void)context;
    CLG_TRY(clg_session_set_input(s, "x", NULL));
    return use_stream_with(s, STREAM_MEMORY_AUTO);
}

static clg_status use_staged_stream(clg_context *context, clg_session *s)
{
    (void)context;
    CLG_TRY(clg_session_set_input(s, "x", NULL));
    return use_stream_with(s, STREAM_MEMORY_STAGED);
}

/* ---- lives -------------------------------------------------------------------------------------------------------- */

const session_life session_lives[] = {
    {"packed weights, folded normalization, wide", CLG_KERNELS_WIDE, true, 1, NULL, conv_model,
     use_conv},
    {"a computed weight in two forms", CLG_KERNELS_WIDE, true, 2, add_scaled, NULL, use_scaled},
    {"folded normalization, simt", CLG_KERNELS_SIMT, true, 0, NULL, conv_model, use_conv},
    {"between quantised numbers", CLG_KERNELS_WIDE, true, 1, add_pairs, NULL, use_pairs},
    {"a count from the device", CLG_KERNELS_AUTO, true, 0, add_count, NULL, use_count},
    {"a product by CLBlast", CLG_KERNELS_SIMT, false, 0, add_product, NULL, use_product},
    {"projections and attention", CLG_KERNELS_WIDE, true, 1, add_attention, NULL, use_attention},
    {"an input where the host has it", CLG_KERNELS_WIDE, true, 1, add_product, NULL,
     use_large_product},
    {"linked state, asynchronously", CLG_KERNELS_AUTO, true, 0, add_state, NULL, use_state},
    {"branches", CLG_KERNELS_WIDE, true, BRANCHES, add_branches, NULL, use_branches},
    {"a stream", CLG_KERNELS_WIDE, true, 0, add_product, NULL, use_stream},
    {"a stream through pinned memory", CLG_KERNELS_SIMT, true, 0, add_product, NULL,
     use_staged_stream},
    {"a function, a measured size, sequences", CLG_KERNELS_AUTO, true, 0, NULL,
     session_life_sequence_model, session_life_use_sequence},
    {"names of classes", CLG_KERNELS_AUTO, true, 0, session_life_add_classes, NULL,
     session_life_use_classes},
    {"a map as an input", CLG_KERNELS_AUTO, true, 0, NULL, session_life_map_model,
     session_life_use_map},
};
const size_t n_session_lives = sizeof session_lives / sizeof *session_lives;

static clg_status build_model(const session_life *life, clg_model **out_model)
{
    clg_builder *g;
    CLG_TRY(clg_builder_create(13, &g));
    clg_status status = life->add_nodes(g);
    if (status == CLG_OK) status = clg_builder_build(g, out_model);
    clg_builder_free(g);
    return status;
}

clg_status session_life_open(const session_life *life, clg_context *context,
                             clg_session **out_session)
{
    clg_model *model;
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = life->kernels;
    options.no_blas = life->no_blas;
    *out_session = NULL;
    CLG_TRY(life->add_nodes ? build_model(life, &model) : life->make_model(&model));
    clg_status status = clg_session_create(context, model, &options, out_session);
    clg_model_free(model);
    return status;
}

static uint64_t count_packed(const clg_context *context)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    assert_ok(clg_context_counters(context, &counters));
    return counters.weights_packed;
}

clg_status session_life_lead(const session_life *life, clg_context *context)
{
    const uint64_t before = count_packed(context);
    clg_session *s;
    CLG_TRY(session_life_open(life, context, &s));
    clg_status status = life->use(context, s);
    clg_session_free(s);
    if (status == CLG_OK) assert_true(count_packed(context) >= before + life->n_packed);
    return status;
}
