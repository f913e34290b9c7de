/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests RNN, GRU and LSTM: directions and layouts, absent inputs and outputs, sizes, activations,
 * dtypes, and errors. support/cases/recurrent_case.h describes the reference and tolerances.
 */
/* ctest: timeout 900 */
#include "support/cases/recurrent_case.h"

#include <math.h>
#include <string.h>

static recurrent_case usual(const char *op_type)
{
    return (recurrent_case){.op_type = op_type,
                            .opset = 14,
                            .dtype = CLG_FLOAT32,
                            .length = 5,
                            .batch = 5,
                            .input = 7,
                            .hidden = 37,
                            .parts = BIAS};
}

static const char *const op_types[] = {"RNN", "GRU", "GRU", "LSTM"};

static recurrent_case usual_of(int i)
{
    recurrent_case k = usual(op_types[i]);
    k.linear = i == 2;
    return k;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(recurrent__directions_and_layouts)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int op = 0; op < 4; op++) {
        for (int i = 0; i < 6; i++) {
            recurrent_case k = usual_of(op);
            k.direction = directions[i % 3];
            k.batch_first = i >= 3;
            k.parts = i % 2 ? ALL : BIAS;
            k.heavy = i % 2 != op % 2;
            recurrent_check(&k);
        }
        recurrent_case k = usual_of(op);
        k.heavy = true;
        k.opset = 7;
        recurrent_check(&k);
        k.opset = 22;
        k.batch_first = true;
        recurrent_check(&k);
    }
}

TEST(recurrent__every_input_and_output_may_be_left_out)
{
    static const int parts[] = {0,
                                LENS,
                                H0,
                                C0,
                                PEEP,
                                BIAS | NO_Y,
                                LENS | NO_Y,
                                NO_Y_H | NO_Y_C,
                                ALL | NO_Y_C,
                                ALL | COMPUTED,
                                COMPUTED,
                                ALL | NO_Y | NO_Y_H};
    for (int op = 0; op < 4; op++) {
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            recurrent_case k = usual_of(op);
            if (op < 3 && (parts[i] & NO_Y) && (parts[i] & NO_Y_H)) continue;
            k.parts = parts[i];
            k.direction = i % 2 ? "bidirectional" : "reverse";
            k.batch_first = i % 3 == 1;
            k.heavy = (int)i % 4 != op;
            recurrent_check(&k);
        }
    }
}

TEST(recurrent__sizes)
{
    static const int64_t sizes[][4] = {/* length, batch, input, hidden */
                                       {0, 2, 3, 37},   {1, 1, 1, 1},    {2, 1, 1, 5},
                                       {3, 4, 0, 16},   {9, 1, 3, 33},   {2, 13, 2, 7},
                                       {12, 2, 64, 65}, {3, 26, 1, 100}, {4, 3, 17, 129}};
    for (int op = 0; op < 4; op++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            recurrent_case k = usual_of(op);
            k.length = sizes[i][0];
            k.batch = sizes[i][1];
            k.input = sizes[i][2];
            k.hidden = sizes[i][3];
            k.direction = "bidirectional";
            k.parts = i % 2 ? BIAS : ALL;
            k.heavy = i > 4;
            recurrent_check(&k);
        }
    }
}

/* All activation functions of ONNX. A second direction with other functions needs a separate kernel
 * launch. */
TEST(recurrent__activations)
{
    static const activation all[12] = {{"LeakyRelu", 0.125, NAN},
                                       {"ScaledTanh", 1.5, 0.5},
                                       {"Softsign", NAN, NAN},
                                       {"HardSigmoid", 0.25, 0.375},
                                       {"ThresholdedRelu", 0.25, NAN},
                                       {"Elu", 0.5, NAN},
                                       {"Sigmoid", NAN, NAN},
                                       {"Affine", 0.5, 0.25},
                                       {"Softplus", NAN, NAN},
                                       {"Relu", NAN, NAN},
                                       {"Tanh", NAN, NAN},
                                       {"HardSigmoid", 0.5, 0.25}};
    static const activation defaults[] = {
        {"LeakyRelu", 0.01, NAN},  {"Affine", 1, 0}, {"ThresholdedRelu", 1, NAN},
        {"HardSigmoid", 0.2, 0.5}, {"Elu", 1, NAN},  {"Tanh", NAN, NAN}};
    recurrent_case k = usual("LSTM");
    k.length = 3;
    k.direction = "bidirectional";
    k.parts = ALL;
    k.activations = all;
    recurrent_check(&k);
    k.activations = all + 6;
    recurrent_check(&k);
    k.activations = defaults;
    k.default_numbers = true;
    recurrent_check(&k);
    k = usual("GRU");
    k.length = 3;
    k.direction = "bidirectional";
    k.activations = all;
    recurrent_check(&k);
    /* Functions with other parameters. */
    static const activation numbers[] = {{"HardSigmoid", 0.25, 0.375}, {"HardSigmoid", 0.5, 0.25}};
    k.op_type = "RNN";
    k.activations = numbers;
    recurrent_check(&k);
}

TEST(recurrent__clip_and_input_forget)
{
    for (int op = 0; op < 4; op++) {
        recurrent_case k = usual_of(op);
        k.clip = 0.25;
        k.parts = ALL;
        recurrent_check(&k);
        if (op < 3) continue;
        k.input_forget = true;
        recurrent_check(&k);
        k.clip = 0;
        recurrent_check(&k);
    }
}

TEST(recurrent__dtypes)
{
    for (int op = 0; op < 4; op++) {
        recurrent_case k = usual_of(op);
        k.parts = ALL;
        k.direction = "bidirectional";
        k.dtype = CLG_FLOAT16;
        recurrent_check(&k);
        k.dtype = CLG_FLOAT64;
        recurrent_check(&k);
    }
}

/* Work-groups share a direction, whatever the device has (api.recurrent_helpers_posix has more). */
TEST(recurrent__shared_by_work_groups)
{
    run_node_by(CLG_KERNELS_SIMD, "recurrent_shared");
    for (int op = 0; op < 4; op++) {
        for (int64_t batch = 1; batch < 6; batch += 4) {
            recurrent_case k = usual_of(op);
            k.batch = batch;
            k.hidden = 67;
            k.direction = batch == 1 ? "reverse" : "bidirectional";
            k.parts = ALL;
            recurrent_check(&k);
        }
    }
    run_node_by(CLG_KERNELS_AUTO, NULL);
}

/* The input's part of the gates exceeds its memory limit, so each launch computes only some time
 * steps. */
TEST(recurrent__time_in_chunks)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int i = 0; i < 3; i++) {
        recurrent_case k = usual(i == 1 ? "GRU" : "LSTM");
        k.length = 5;
        k.batch = 5000;
        k.input = 1;
        k.hidden = 64;
        k.direction = directions[i];
        k.batch_first = i == 1;
        k.parts = LENS | (i == 2 ? NO_Y : 0);
        k.heavy = true;
        recurrent_check(&k);
    }
}

/* More hidden units than fit in local memory. */
TEST(recurrent__large_states)
{
    for (int op = 0; op < 2; op++) {
        recurrent_case k = usual_of(op);
        k.dtype = CLG_FLOAT64;
        k.length = 2;
        k.batch = 1;
        k.input = 1;
        k.hidden = op == 0 ? 2053 : 2050;
        k.parts = H0;
        k.heavy = true;
        recurrent_check(&k);
    }
}

/* NaN and infinity affect only their own sequence. */
TEST(recurrent__nan_and_infinity)
{
    static const double x[] = {0, 0, 0, NAN, INFINITY, 0, 0, 0, 0}, w[] = {1}, r[] = {1};
    static const double y[] = {0, 0, 0, NAN, 1, 0, NAN, 0.76159415595576489, 0};
    run_node n;
    run_node_start(&n, NULL, "RNN", 14);
    run_node_input(&n, CLG_FLOAT32, 3, (int64_t[]){3, 3, 1}, x);
    run_node_constant(&n, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, w);
    run_node_constant(&n, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, r);
    run_node_expect(&n, CLG_FLOAT32, 4, (int64_t[]){3, 1, 3, 1}, y);
    run_node_check(&n, 1e-6);
}

/* ---- errors ---------------------------------------------------------------------------------- */

TEST(recurrent__bad_lengths_are_reported)
{
    for (int i = 0; i < 2; i++) {
        run_node r;
        const char *names[RECURRENT_LIST];
        recurrent_case k = usual("GRU");
        k.parts = LENS;
        const recurrent_data d = recurrent_make(&k);
        d.lens[3] = i == 0 ? 6 : -1;
        recurrent_write(&d, &r, names);
        run_node_expect(&r, CLG_FLOAT32, 4, (int64_t[]){5, 1, 5, 37}, d.y);
        run_node_refused(&r, CLG_ERROR_DATA, i == 0 ? "6" : "-1");
    }
}

static void refused(const recurrent_case *k, const int64_t *r_dims, const char *words)
{
    run_node n;
    const char *names[RECURRENT_LIST];
    const recurrent_data d = recurrent_make(k);
    recurrent_write(&d, &n, names);
    if (r_dims) memcpy(n.inputs[2].dims, r_dims, 3 * sizeof *r_dims);
    if (r_dims) n.inputs[2].n = r_dims[0] * r_dims[1] * r_dims[2];
    run_node_expect(&n, k->dtype, 0, NULL, NULL);
    run_node_refused(&n,
                     r_dims         ? CLG_ERROR_SHAPE
                     : k->direction ? CLG_ERROR_UNSUPPORTED_ATTRIBUTE
                                    : CLG_ERROR_INVALID_MODEL,
                     words);
}

/* One cell, x = 1, W = 0.5, R = 0: the default of RNN has two activations in each direction. */
static void two_activations(run_node *r, const char *const *names)
{
    static const double one = 1, half = 0.5, zero = 0, y = 0.46211715726000973; /* tanh(0.5) */
    run_node_start(r, NULL, "RNN", 14);
    run_node_int(r, "hidden_size", 1);
    run_node_strings(r, "activations", 2, names);
    run_node_input(r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, &one);
    run_node_constant(r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, &half);
    run_node_constant(r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, &zero);
    run_node_expect(r, CLG_FLOAT32, 4, (int64_t[]){1, 1, 1, 1}, &y);
}

TEST(recurrent__two_activations)
{
    run_node r;
    two_activations(&r, (const char *const[]){"Tanh", "Tanh"});
    run_node_check(&r, 1e-6);
    two_activations(&r, (const char *const[]){"Tanh", "Relu"});
    run_node_refused(&r, CLG_ERROR_INVALID_MODEL, "2 activations where 1");
}

TEST(recurrent__refuses_what_is_none)
{
    static const activation scaled_tanh[] = {{"ScaledTanh", NAN, NAN}};
    recurrent_case k = usual("RNN");
    k.direction = "sideways";
    refused(&k, NULL, "sideways");
    k = usual("RNN");
    refused(&k, (int64_t[]){1, 37, 36}, "hidden units");
    refused(&k, (int64_t[]){1, 36, 37}, "hidden units");
    k.activations = scaled_tanh;
    refused(&k, NULL, "ScaledTanh");
}

static void one_attribute(const char *name, int64_t i, double f, const char *const *strings,
                          clg_status status, const char *words)
{
    run_node r;
    run_node_start(&r, NULL, "LSTM", 14);
    run_node_input(&r, CLG_FLOAT32, 3, (int64_t[]){1, 1, 1}, run_node_zeros(1));
    run_node_constant(&r, CLG_FLOAT32, 3, (int64_t[]){1, 4, 1}, run_node_zeros(4));
    run_node_constant(&r, CLG_FLOAT32, 3, (int64_t[]){1, 4, 1}, run_node_zeros(4));
    if (strings)
        run_node_strings(&r, name, 3, strings);
    else if (f != 0)
        run_node_float(&r, name, f);
    else
        run_node_int(&r, name, i);
    run_node_expect(&r, CLG_FLOAT32, 0, NULL, NULL);
    run_node_refused(&r, status, words);
}

TEST(recurrent__refuses_attributes)
{
    static const char *const unknown[] = {"Sigmoid", "Tanh", "Mish"};
    one_attribute("layout", 2, 0, NULL, CLG_ERROR_INVALID_MODEL, "'layout' is 2");
    one_attribute("clip", 0, -1, NULL, CLG_ERROR_INVALID_MODEL, "clip");
    one_attribute("hidden_size", 2, 0, NULL, CLG_ERROR_SHAPE, "hidden units");
    one_attribute("hidden_size", 0, 0, NULL, CLG_ERROR_INVALID_MODEL, "hidden_size");
    one_attribute("activations", 0, 0, unknown, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "Mish");
}

TEST_GROUP(run_node_open, run_node_close)
