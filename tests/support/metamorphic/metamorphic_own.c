/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of the project for metamorphic tests: written so that together they have a node for each
 * graph pass and several implementations to choose from; models of soak_models.h; random graphs.
 * Weights and inputs follow from the names of values. See metamorphic_models.h.
 */
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/random_graph.h"
#include "support/fixtures/soak_models.h"
#include "support/literals.h"
#include "support/metamorphic/metamorphic_models.h"

#include "base/hash.h"
#include "session/exec/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 5, POSITIONS = 6, WIDTH = 32 };

/* ---- data and nodes -------------------------------------------------------------------------- */

/* Fills x with numbers between -scale and scale that follow from the name. */
static void fill(const char *name, float scale, size_t n, float *x)
{
    uint64_t random = hash_bytes(name, strlen(name), 7);
    for (size_t i = 0; i < n; i++)
        x[i] = scale * ((float)(random_next(&random) % 8191) / 4095.0f - 1.0f);
}

static void weights(ow_model *m, const char *name, float scale, size_t rank, const int64_t *dims)
{
    static float data[65536];
    size_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    fill(name, scale, n, data);
    ow_initializer(m, ow_tensor_raw(name, CLG_FLOAT32, rank, dims, data, n * sizeof *data));
}

static void number(ow_model *m, const char *name, float x)
{
    ow_initializer(m, ow_tensor_raw(name, CLG_FLOAT32, 0, NULL, &x, sizeof x));
}

static void ints(ow_model *m, const char *name, size_t n, const int64_t *x)
{
    ow_initializer(m, ow_tensor_raw(name, CLG_INT64, 1, (int64_t[]){(int64_t)n}, x, n * sizeof *x));
}

/* Adds a node. attributes: "axis=1 pads=1,1,1,1 axes=-1,": a number is an integer, numbers with a
 * comma after each but the last, or after each, are a list; NULL: none. */
static void node_with(ow_model *m, const char *op_type, const char *inputs, const char *outputs,
                      const char *attributes)
{
    ow_bytes n = ow_node(op_type, outputs, inputs, outputs);
    for (const char *at = attributes; at && *at;) {
        char name[32];
        int64_t list[8];
        size_t count = 0;
        const size_t length = strcspn(at, "=");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        at += length;
        bool is_list = false;
        while (*at == '=' || *at == ',') {
            char *end;
            is_list |= *at++ == ',';
            if (*at != ' ' && *at) list[count++] = strtoll(at, &end, 10), at = end;
        }
        if (is_list) ow_attribute_ints(&n, name, count, list);
        if (!is_list) ow_attribute_int(&n, name, list[0]);
        at += *at == ' ';
    }
    ow_add_node(m, n);
}

static void node_of(ow_model *m, const char *op_type, const char *inputs, const char *outputs)
{
    node_with(m, op_type, inputs, outputs, NULL);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* x: [N,16,18,18]; y: [N,10]. Passes pad, batchnorm, epilogue, winograd, concat. */
static void make_convolutions(ow_model *m)
{
    ow_input(m, "x", CLG_FLOAT32, 4, DIMS(-1, 16, 18, 18), "N");
    ints(m, "border", 8, DIMS(0, 0, 1, 1, 0, 0, 1, 1));
    node_of(m, "Pad", "x,border", "padded");
    weights(m, "w1", 0.2f, 4, DIMS(16, 16, 3, 3));
    node_of(m, "Conv", "padded,w1", "c1");
    for (int i = 0; i < 4; i++)
        weights(m, (const char *[]){"gain", "shift", "mean", "spread"}[i], 0.5f, 1, DIMS(16));
    node_of(m, "Abs", "spread", "variance");
    node_of(m, "BatchNormalization", "c1,gain,shift,mean,variance", "normal");
    node_of(m, "Relu", "normal", "r1");
    weights(m, "w2", 0.3f, 4, DIMS(48, 16, 1, 1));
    node_of(m, "Conv", "r1,w2", "wide");
    weights(m, "w3", 0.4f, 4, DIMS(48, 1, 3, 3));
    node_with(m, "Conv", "wide,w3", "deep", "group=48 pads=1,1,1,1");
    node_of(m, "Relu", "deep", "r2");
    weights(m, "w4", 0.1f, 4, DIMS(16, 48, 3, 3));
    weights(m, "b4", 0.1f, 1, DIMS(16));
    node_with(m, "Conv", "r2,w4,b4", "c4", "pads=1,1,1,1");
    node_of(m, "Add", "c4,r1", "sum");
    node_of(m, "Relu", "sum", "r4");
    node_with(m, "Concat", "r4,r1", "two", "axis=1");
    weights(m, "w5", 0.1f, 4, DIMS(8, 32, 3, 3));
    node_with(m, "Conv", "two,w5", "c5", "pads=1,1,1,1");
    node_with(m, "Concat", "r4,r1,c5", "three", "axis=1");
    node_with(m, "MaxPool", "three", "pooled", "kernel_shape=3,3 strides=2,2");
    weights(m, "w6", 0.2f, 4, DIMS(10, 40, 1, 1));
    node_of(m, "Conv", "pooled,w6", "c6");
    node_of(m, "GlobalAveragePool", "c6", "average");
    node_with(m, "Flatten", "average", "scores", "axis=1");
    node_with(m, "Softmax", "scores", "y", "axis=1");
    ow_output(m, "y", CLG_FLOAT32);
}

/* x: [N,32,32,3], an image with channels last; y: [N,10]. Passes blocked, expand, transpose. */
static void make_image(ow_model *m)
{
    ow_input(m, "x", CLG_FLOAT32, 4, DIMS(-1, 32, 32, 3), "N");
    node_with(m, "Transpose", "x", "planes", "perm=0,3,1,2");
    weights(m, "w1", 0.3f, 4, DIMS(32, 3, 3, 3));
    node_with(m, "Conv", "planes,w1", "c1", "strides=2,2 pads=1,1,1,1");
    node_of(m, "Relu", "c1", "r1");
    weights(m, "w2", 0.2f, 4, DIMS(96, 32, 1, 1));
    node_of(m, "Conv", "r1,w2", "c2");
    node_of(m, "Relu", "c2", "r2");
    weights(m, "w3", 0.4f, 4, DIMS(96, 1, 3, 3));
    node_with(m, "Conv", "r2,w3", "c3", "group=96 pads=1,1,1,1");
    node_of(m, "Relu", "c3", "r3");
    weights(m, "w4", 0.1f, 4, DIMS(32, 96, 1, 1));
    node_of(m, "Conv", "r3,w4", "c4");
    node_of(m, "Add", "c4,r1", "sum");
    weights(m, "w5", 0.1f, 4, DIMS(64, 32, 3, 3));
    node_with(m, "Conv", "sum,w5", "c5", "pads=1,1,1,1");
    node_of(m, "Relu", "c5", "r5");
    node_of(m, "GlobalAveragePool", "r5", "average");
    node_with(m, "Flatten", "average", "flat", "axis=1");
    weights(m, "w6", 0.3f, 2, DIMS(64, 10));
    node_of(m, "MatMul", "flat,w6", "y");
    ow_output(m, "y", CLG_FLOAT32);
}

/* Adds a linear layer NAME of x to [N,6,32], without and with bias. */
static void linear(ow_model *m, const char *x, const char *name)
{
    char w[32], b[32], product[32], both[72];
    (void)snprintf(w, sizeof w, "%.16s_w", name);
    (void)snprintf(b, sizeof b, "%.16s_b", name);
    (void)snprintf(product, sizeof product, "%.16s_p", name);
    weights(m, w, 0.3f, 2, DIMS(WIDTH, WIDTH));
    weights(m, b, 0.1f, 1, DIMS(WIDTH));
    (void)snprintf(both, sizeof both, "%.24s,%s", x, w);
    node_of(m, "MatMul", both, product);
    (void)snprintf(both, sizeof both, "%s,%s", product, b);
    node_of(m, "Add", both, name);
}

static void normalise(ow_model *m)
{
    number(m, "two", 2);
    number(m, "epsilon", 1e-5f);
    weights(m, "scale", 1, 1, DIMS(WIDTH));
    weights(m, "offset", 0.2f, 1, DIMS(WIDTH));
    node_with(m, "ReduceMean", "same", "centre", "axes=-1,");
    node_of(m, "Sub", "same,centre", "off");
    node_of(m, "Pow", "off,two", "squares");
    node_with(m, "ReduceMean", "squares", "variance", "axes=-1,");
    node_of(m, "Add", "variance,epsilon", "positive");
    node_of(m, "Sqrt", "positive", "deviation");
    node_of(m, "Div", "off,deviation", "unit");
    node_of(m, "Mul", "unit,scale", "scaled");
    node_of(m, "Add", "scaled,offset", "normal");
}

static void attend(ow_model *m)
{
    ints(m, "heads", 4, DIMS(0, 0, 4, WIDTH / 4));
    ints(m, "flat", 3, DIMS(0, 0, WIDTH));
    number(m, "root", 2.8284271f);
    for (int i = 0; i < 3; i++) linear(m, "normal", (const char *[]){"q", "k", "v"}[i]);
    node_of(m, "Reshape", "q,heads", "q4");
    node_of(m, "Shape", "k", "sizes"); /* as exporters write it */
    ints(m, "from", 1, DIMS(0));
    ints(m, "to", 1, DIMS(2));
    node_of(m, "Slice", "sizes,from,to", "rows");
    ints(m, "split", 2, DIMS(4, WIDTH / 4));
    node_with(m, "Concat", "rows,split", "k_heads", "axis=0");
    node_of(m, "Reshape", "k,k_heads", "k4");
    node_of(m, "Reshape", "v,heads", "v4");
    node_with(m, "Transpose", "q4", "qt", "perm=0,2,1,3");
    node_with(m, "Transpose", "k4", "kt", "perm=0,2,3,1");
    node_with(m, "Transpose", "v4", "vt", "perm=0,2,1,3");
    node_of(m, "MatMul", "qt,kt", "products");
    node_of(m, "Div", "products,root", "logits");
    node_with(m, "Softmax", "logits", "shares", "axis=-1");
    node_of(m, "MatMul", "shares,vt", "heads_out");
    node_with(m, "Transpose", "heads_out", "back", "perm=0,2,1,3");
    node_of(m, "Reshape", "back,flat", "joined");
    linear(m, "joined", "o");
    node_of(m, "Add", "o,x", "residual");
}

/* x, y: [N,6,32]. Passes identity, shapes, common, transpose, activation, norm, attention,
 * epilogue, projections, pointwise, dead. */
static void make_transformer(ow_model *m)
{
    ow_input(m, "x", CLG_FLOAT32, 3, DIMS(-1, POSITIONS, WIDTH), "N");
    node_of(m, "Identity", "x", "same");
    normalise(m);
    attend(m);
    linear(m, "residual", "h");
    number(m, "sqrt2", 1.41421356f);
    number(m, "one", 1);
    number(m, "half", 0.5f);
    node_of(m, "Div", "h,sqrt2", "e1");
    node_of(m, "Erf", "e1", "e2");
    node_of(m, "Identity", "e2", "e2_same");
    node_of(m, "Add", "e2_same,one", "e3");
    node_of(m, "Mul", "h,e3", "e4");
    node_of(m, "Mul", "e4,half", "gelu");
    linear(m, "gelu", "last");
    weights(m, "square", 0.2f, 2, DIMS(WIDTH, WIDTH));
    node_of(m, "MatMul", "last,square", "m1");
    node_of(m, "MatMul", "last,square", "m2");
    node_of(m, "Tanh", "m1", "tanh1");
    node_of(m, "Tanh", "m2", "tanh2");
    node_of(m, "Sigmoid", "residual", "unused");
    node_with(m, "Transpose", "tanh1", "t1", "perm=0,2,1");
    node_of(m, "Abs", "t1", "t2");
    node_with(m, "Transpose", "t2", "t3", "perm=0,2,1");
    node_of(m, "Add", "t3,tanh2", "t4");
    node_of(m, "Mul", "t4,residual", "y");
    ow_output(m, "y", CLG_FLOAT32);
}

/* Adds NAME, the input x quantised in steps of 1/32 and dequantised. */
static void round_trip(ow_model *m, const char *x, const char *name)
{
    char inputs[96], bytes[48];
    (void)snprintf(bytes, sizeof bytes, "%.40s_8", name);
    (void)snprintf(inputs, sizeof inputs, "%.40s,step,zero", x);
    node_of(m, "QuantizeLinear", inputs, bytes);
    (void)snprintf(inputs, sizeof inputs, "%s,step,zero", bytes);
    node_of(m, "DequantizeLinear", inputs, name);
}

/* x: [N,8,12,12]; y: [N,8,12,12], quantised in steps of 1/32. Passes qdq, qdq_chains. */
static void make_quantised(ow_model *m)
{
    static const uint8_t zero = 128;
    static const int8_t weight_zero = 0;
    int8_t w[8 * 8 * 9];
    float numbers[8 * 8 * 9];
    fill("w", 100, sizeof w, numbers);
    for (size_t i = 0; i < sizeof w; i++) w[i] = (int8_t)numbers[i];
    ow_input(m, "x", CLG_FLOAT32, 4, DIMS(-1, 8, 12, 12), "N");
    number(m, "step", 1.0f / 32);
    number(m, "weight_step", 1.0f / 512);
    ow_initializer(m, ow_tensor_raw("zero", CLG_UINT8, 0, NULL, &zero, 1));
    ow_initializer(m, ow_tensor_raw("weight_zero", CLG_INT8, 0, NULL, &weight_zero, 1));
    ow_initializer(m, ow_tensor_raw("w8", CLG_INT8, 4, DIMS(8, 8, 3, 3), w, sizeof w));
    round_trip(m, "x", "a");
    node_of(m, "DequantizeLinear", "w8,weight_step,weight_zero", "w");
    node_with(m, "Conv", "a,w", "c", "pads=1,1,1,1");
    node_of(m, "Relu", "c", "r");
    round_trip(m, "r", "b");
    node_of(m, "Sigmoid", "b", "s");
    node_of(m, "Mul", "s,b", "t");
    round_trip(m, "t", "d");
    node_of(m, "Add", "d,a", "e");
    round_trip(m, "e", "y");
    ow_output(m, "y", CLG_FLOAT32);
}

/* x: [7,N,12]; y: [7,2,N,16], c: [2,N,16], h: [1,N,16]: the batch is the second axis of x. */
static void make_recurrent(ow_model *m)
{
    ow_input(m, "x", CLG_FLOAT32, 3, DIMS(7, -1, 12), "N");
    weights(m, "lw", 0.4f, 3, DIMS(2, 64, 12));
    weights(m, "lr", 0.4f, 3, DIMS(2, 64, 16));
    ow_bytes n = ow_node("LSTM", "lstm", "x,lw,lr", "y,,c");
    ow_attribute_int(&n, "hidden_size", 16);
    ow_attribute_string(&n, "direction", "bidirectional");
    ow_add_node(m, n);
    ow_output(m, "y", CLG_FLOAT32);
    ow_output(m, "c", CLG_FLOAT32);
    weights(m, "gw", 0.4f, 3, DIMS(1, 48, 12));
    weights(m, "gr", 0.4f, 3, DIMS(1, 48, 16));
    node_with(m, "GRU", "x,gw,gr", ",h", "hidden_size=16");
    ow_output(m, "h", CLG_FLOAT32);
}

/* ---- the list -------------------------------------------------------------------------------- */

#define ROWS (META_PERMUTED | META_EXTENDED)

static const char fixed_random[] = "a random graph of fixed shapes";

/* A graph: what makes it, or which model of soak_models.h it is, or a seed. A result may differ by
 * atol: the graphs compute in float32, and their results are of order 1. Quantised results may
 * differ by one step, of 1/32. */
static const struct own {
    meta_batch batch;
    double atol;
    void (*make)(ow_model *m);
    int soak;
    uint64_t seed;
} own[] = {
    {{"own_convolutions", ROWS, "*=0", NULL}, 1e-5, make_convolutions, -1, 0},
    {{"own_image", ROWS, "*=0", NULL}, 1e-4, make_image, -1, 0},
    {{"own_transformer", ROWS, "*=0", NULL}, 1e-4, make_transformer, -1, 0},
    {{"own_quantised", ROWS, "*=0", NULL}, 1.001 / 32, make_quantised, -1, 0},
    {{"own_recurrent", ROWS, "y=2 *=1", NULL}, 1e-5, make_recurrent, -1, 0},
    {{"own_digits", ROWS, "*=0", NULL}, 1e-5, NULL, 0, 0},
    {{"own_decoder", ROWS, "past_*=1 present_*=1 *=0", NULL}, 1e-4, NULL, 1, 0},
    {{"own_data_dependent", 0, NULL, "how many elements there are depends on all of them"},
     1e-5,
     NULL,
     3,
     0},
    {{"own_perceptron", ROWS, "*=0", NULL}, 1e-5, NULL, 4, 0},
    {{"own_random_1", 0, NULL, fixed_random}, 1e-3, NULL, -1, 104},
    {{"own_random_2", 0, NULL, fixed_random}, 1e-3, NULL, -1, 102},
};

size_t meta_own_count(void) { return sizeof own / sizeof *own; }
const char *meta_own_name(size_t which) { return own[which].batch.name; }

static clg_status make_random(uint64_t seed, clg_model **out_model)
{
    plan_case k;
    random_graph_options o = {.n_nodes = 16};
    plan_case_start(&k, CLG_KERNELS_SIMD);
    random_graph_make(&k, seed, &o);
    const clg_status status = model_create(k.graph, false, out_model);
    k.graph = NULL;
    plan_case_end(&k);
    return status;
}

static clg_status make_inputs(meta_case *c)
{
    for (; c->n_inputs < clg_model_n_inputs(c->model); c->n_inputs++) {
        const clg_port *port = clg_model_input(c->model, c->n_inputs);
        int64_t dims[CLG_MAX_RANK];
        for (int d = 0; d < port->rank; d++) dims[d] = port->dims[d] < 0 ? BATCH : port->dims[d];
        clg_value **x = &c->inputs[c->n_inputs];
        CLG_TRY(clg_value_create(port->dtype, (size_t)port->rank, dims, x));
        fill(port->name, 2, (size_t)clg_value_n_elements(*x), clg_value_data(*x));
    }
    return CLG_OK;
}

static clg_status open_soak(int which, meta_case *c)
{
    soak_model m;
    clg_status status = soak_model_own((size_t)which, &m);
    if (status == CLG_OK) status = soak_model_load(&m, &c->model);
    for (; status == CLG_OK && c->n_inputs < m.n_inputs; c->n_inputs++)
        c->inputs[c->n_inputs] = clg_value_retain(m.values[BATCH][c->n_inputs]);
    soak_model_close(&m);
    return status;
}

clg_status meta_own_open(size_t which, meta_case *out_case)
{
    const struct own *o = &own[which];
    ow_model m = {.ir_version = 8, .opset = 13};
    clg_status status;
    *out_case = (meta_case){.batch = &o->batch, .rtol = 1e-4, .atol = o->atol};
    out_case->whole = o->make == make_quantised;
    (void)snprintf(out_case->name, sizeof out_case->name, "%s", o->batch.name);
    if (o->make) {
        o->make(&m);
        status = ow_load(&m, &out_case->model);
    } else if (o->soak < 0) {
        status = make_random(o->seed, &out_case->model);
    } else {
        return open_soak(o->soak, out_case);
    }
    if (status == CLG_OK) status = make_inputs(out_case);
    if (status != CLG_OK) meta_case_close(out_case);
    return status;
}
