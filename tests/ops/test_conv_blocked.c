/* SPDX-License-Identifier: Apache-2.0
 *
 * clgraph.BlockedConv, convolutions of maps in blocks of channels, against the formula in double over NCHW order. Channels are
 * counted in blocks, so that they fit any device; numbers are turned by the test. Kernels other than wide ones must refuse it;
 * simulators are asked for wide ones too, where a case is small.
 *
 * Tolerance of the larger of the result and sqrt(terms): the formula and 2x2 tiles 2e-6, 4x4 tiles 8e-6, as in test_winograd.c.
 * Long sums, whose rounding would exceed it, are of whole numbers, which float adds exactly.
 */
/* ctest: timeout 900 */
#include "support/run_node.h"

#include "session/context.h"
#include "session/model.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

#define MOST_SIMULATED 300000 /* multiply-adds of a case */
#define LONG_SUM 4096         /* terms */

typedef struct conv_case {
    int64_t n, c_blocks, m_blocks; /* images, blocks of channels in and out */
    int64_t c_less, m_less;        /* channels that the last block lacks */
    bool depthwise;                /* as many groups as channels, which are c's */
    int64_t picture;               /* channels of an x in NCHW order; 0: x is in blocks */
    int64_t h, w, kernel[2];
    int64_t pads[4], strides[2], dilations[2]; /* as ONNX has them; no strides or dilations: 1 */
    const char *auto_pad;                      /* the node's in place of pads, which say the same */
    bool bias, residual;
    const char *activation;
    float alpha;  /* of LeakyRelu */
    int64_t side; /* of tiles that are forced; 0: the formula */
    bool plain;   /* FusedConv, all in NCHW order */
} conv_case;

/* A case on a device. Numbers in NCHW order. */
typedef struct conv_run {
    conv_case t;
    int64_t lanes, c, depth, m, oh, ow; /* depth: channels that an output sees */
    shape x_dims, y_dims;
    const double *x, *weight, *bias, *residual;
    double *y;
} conv_run;

/* ---- the formula -------------------------------------------------------------------------------------- */

static double activate(const conv_case *t, double v)
{
    if (!t->activation) return v;
    if (strcmp(t->activation, "Relu") == 0) return fmax(v, 0);
    if (strcmp(t->activation, "LeakyRelu") == 0) return v < 0 ? (double)t->alpha * v : v;
    if (strcmp(t->activation, "HardSwish") == 0) return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    assert_string_equal(t->activation, "Sigmoid");
    return 1 / (1 + exp(-v));
}

/* What kernel w sees of an input plane from (row, col) on. */
static double window_sum(const conv_case *t, const double *plane, const double *w, int64_t row,
                         int64_t col)
{
    double sum = 0;
    for (int64_t i = 0; i < t->kernel[0]; i++) {
        const int64_t y = row + i * t->dilations[0];
        if (y < 0 || y >= t->h) continue;
        for (int64_t k = 0; k < t->kernel[1]; k++) {
            const int64_t x = col + k * t->dilations[1];
            if (x >= 0 && x < t->w) sum += w[i * t->kernel[1] + k] * plane[y * t->w + x];
        }
    }
    return sum;
}

static void expect(conv_run *r)
{
    const conv_case *t = &r->t;
    const int64_t plane = r->oh * r->ow, taps = t->kernel[0] * t->kernel[1];
    for (int64_t i = 0; i < t->n * r->m * plane; i++) {
        const int64_t image = i / plane / r->m, o = i / plane % r->m;
        const int64_t row = i / r->ow % r->oh * t->strides[0] - t->pads[0];
        const int64_t col = i % r->ow * t->strides[1] - t->pads[1];
        double sum = t->bias ? r->bias[o] : 0;
        const double *x = r->x + (image * r->c + (t->depthwise ? o : 0)) * t->h * t->w;
        for (int64_t k = 0; k < r->depth; k++)
            sum +=
                window_sum(t, x + k * t->h * t->w, r->weight + (o * r->depth + k) * taps, row, col);
        r->y[i] = activate(t, t->residual ? sum + r->residual[i] : sum);
    }
}

/* ---- numbers ------------------------------------------------------------------------------------------ */

static shape map_dims(const conv_run *r, bool in_blocks, int64_t channels, int64_t h, int64_t w)
{
    if (!in_blocks) return (shape){.rank = 4, .dims = {r->t.n, channels, h, w}};
    const int64_t blocks = (channels + r->lanes - 1) / r->lanes;
    return (shape){.rank = 5, .dims = {r->t.n, blocks, h, w, r->lanes}};
}

static int64_t outputs_of(const conv_case *t, int axis)
{
    const int64_t in = axis == 0 ? t->h : t->w;
    const int64_t seen = (t->kernel[axis] - 1) * t->dilations[axis] + 1;
    return (in + t->pads[axis] + t->pads[2 + axis] - seen) / t->strides[axis] + 1;
}

static conv_run sizes_on(const conv_case *t, clg_context *context)
{
    conv_run r = {.t = *t, .lanes = caps_wide_lanes(ocl_context_caps(context->ocl))};
    for (int i = 0; i < 2; i++) {
        if (r.t.strides[i] == 0) r.t.strides[i] = 1;
        if (r.t.dilations[i] == 0) r.t.dilations[i] = 1;
    }
    r.c = t->picture ? t->picture : t->c_blocks * r.lanes - t->c_less;
    r.depth = t->depthwise ? 1 : r.c;
    r.m = t->depthwise ? r.c : t->m_blocks * r.lanes - t->m_less;
    r.oh = outputs_of(&r.t, 0);
    r.ow = outputs_of(&r.t, 1);
    r.x_dims = map_dims(&r, !t->picture && !t->plain, r.c, t->h, t->w);
    r.y_dims = map_dims(&r, !t->plain, r.m, r.oh, r.ow);
    return r;
}

static int64_t terms_of(const conv_run *r) { return r->depth * r->t.kernel[0] * r->t.kernel[1]; }

static int64_t multiply_adds(const conv_run *r)
{
    return r->t.n * r->m * r->oh * r->ow * terms_of(r);
}

static const double *numbers(int64_t n, bool whole)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; whole && i < n; i++) x[i] = rint(3 * x[i]);
    return x;
}

static void make_numbers(conv_run *r)
{
    const int64_t n_y = r->t.n * r->m * r->oh * r->ow;
    const bool whole = terms_of(r) > LONG_SUM;
    r->x = numbers(r->t.n * r->c * r->t.h * r->t.w, whole);
    r->weight = numbers(r->m * terms_of(r), whole);
    r->bias = numbers(r->m, whole);
    r->residual = run_node_random(n_y);
    r->y = run_node_zeros(n_y);
}

/* Where element i of a map of `channels` in NCHW order lies in one of these dimensions. */
static int64_t turned(const shape *s, int64_t channels, int64_t i)
{
    const int64_t plane = s->dims[2] * s->dims[3], lanes = s->dims[4];
    const int64_t image = i / plane / channels, c = i / plane % channels;
    if (s->rank == 4) return i;
    return ((image * s->dims[1] + c / lanes) * plane + i % plane) * lanes + c % lanes;
}

/* ---- the model ---------------------------------------------------------------------------------------- */

static value_id add_value(graph *g, const char *name, const shape *dims)
{
    value_id v;
    assert_ok(graph_add_value(g, name, &v));
    g->values[v].dtype = CLG_FLOAT32;
    if (dims) g->values[v].dims = *dims;
    if (dims) assert_ok(graph_add_input(g, v));
    return v;
}

static value_id add_constant(graph *g, const char *name, const shape *s, const double *numbers)
{
    value_id v;
    tensor *made;
    assert_ok(tensor_create(CLG_FLOAT32, s, &made));
    for (int64_t i = 0; i < made->n_elements; i++) tensor_set_float(made, i, numbers[i]);
    assert_ok(graph_add_constant(g, name, made, &v));
    tensor_free(made);
    return v;
}

static void set_attributes(graph *g, node_id n, const conv_run *r)
{
    const conv_case *t = &r->t;
    assert_ok(node_set_ints(g, n, "strides", 2, t->strides));
    assert_ok(node_set_ints(g, n, "dilations", 2, t->dilations));
    assert_ok(node_set_ints(g, n, "kernel_shape", 2, t->kernel));
    if (t->auto_pad)
        assert_ok(node_set_string(g, n, "auto_pad", t->auto_pad));
    else
        assert_ok(node_set_ints(g, n, "pads", 4, t->pads));
    if (t->activation) assert_ok(node_set_string(g, n, "activation", t->activation));
    if (t->alpha != 0) assert_ok(node_set_float(g, n, "activation_alpha", t->alpha));
    assert_ok(node_set_int(g, n, "winograd", t->side));
    if (t->depthwise) assert_ok(node_set_int(g, n, "group", r->m));
    if (!t->plain) assert_ok(node_set_int(g, n, "lanes", r->lanes));
}

static clg_status make_model(const conv_run *r, clg_model **out_model)
{
    const conv_case *t = &r->t;
    const shape w = {.rank = 4, .dims = {r->m, r->depth, t->kernel[0], t->kernel[1]}};
    const shape b = {.rank = 1, .dims = {r->m}};
    value_id in[4] = {VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE}, y;
    graph *g;
    node_id n;
    assert_ok(graph_create("", &g));
    assert_ok(graph_set_opset(g, "clgraph", 1));
    in[0] = add_value(g, "x", &r->x_dims);
    in[1] = add_constant(g, "w", &w, r->weight);
    if (t->bias) in[2] = add_constant(g, "b", &b, r->bias);
    if (t->residual) in[3] = add_value(g, "r", &r->y_dims);
    y = add_value(g, "y", NULL);
    assert_ok(graph_add_node(g, "clgraph", t->plain ? "FusedConv" : "BlockedConv", "tested", 4, in,
                             1, &y, &n));
    set_attributes(g, n, r);
    assert_ok(graph_add_output(g, y));
    return model_create(g, false, out_model);
}

static void set_input(clg_session *session, const char *name, const shape *s, int64_t channels,
                      const double *numbers)
{
    const int64_t n = s->dims[0] * channels * s->dims[2] * s->dims[3];
    tensor *made;
    assert_ok(tensor_create(CLG_FLOAT32, s, &made));
    for (int64_t i = 0; i < made->n_elements; i++) tensor_set_float(made, i, 0);
    for (int64_t i = 0; i < n; i++) tensor_set_float(made, turned(s, channels, i), numbers[i]);
    assert_ok(clg_session_set_input_data(session, name, CLG_FLOAT32, (size_t)s->rank, s->dims,
                                         made->data));
    tensor_free(made);
}

/* ---- checks ------------------------------------------------------------------------------------------- */

/* Of model, session or run, whatever fails first. */
static clg_status run_model(clg_context *context, const clg_session_options *options,
                            const conv_run *r, clg_session **out_session)
{
    clg_model *model = NULL;
    *out_session = NULL;
    clg_status status = make_model(r, &model);
    if (status == CLG_OK) status = clg_session_create(context, model, options, out_session);
    clg_model_free(model);
    if (status != CLG_OK) return status;
    set_input(*out_session, "x", &r->x_dims, r->c, r->x);
    if (r->t.residual) set_input(*out_session, "r", &r->y_dims, r->m, r->residual);
    return clg_session_run(*out_session);
}

static void check_refused(clg_context *context, const clg_session_options *options,
                          const conv_run *r, clg_status status, const char *words)
{
    clg_session *session;
    assert_error(run_model(context, options, r, &session), status, words);
    clg_session_free(session);
}

static void check_way(clg_session *session, const conv_case *t, const char *place)
{
    const char *way = t->depthwise   ? "conv_depthwise_blocked"
                      : t->side == 0 ? "conv_blocked"
                      : t->side == 2 ? "winograd_2x2"
                                     : "winograd_4x4";
    char *plan;
    if (t->plain || t->n == 0) return;
    assert_ok(clg_session_plan_text(session, &plan));
    if (!strstr(plan, way) || (t->side == 0 && strstr(plan, "winograd")))
        fail_msg("on %s: not by %s but\n%s", place, way, plan);
    clg_text_free(plan);
}

static void describe(const conv_run *r)
{
    const conv_case *t = &r->t;
    print_error(
        "%lld images of %lld channels, %lldx%lld, to %lld, blocks of %lld; kernel %lldx%lld, "
        "strides %lld %lld, pads %lld %lld %lld %lld, dilations %lld %lld, side %lld%s%s%s%s%s\n",
        (long long)t->n, (long long)r->c, (long long)t->h, (long long)t->w, (long long)r->m,
        (long long)r->lanes, (long long)t->kernel[0], (long long)t->kernel[1],
        (long long)t->strides[0], (long long)t->strides[1], (long long)t->pads[0],
        (long long)t->pads[1], (long long)t->pads[2], (long long)t->pads[3],
        (long long)t->dilations[0], (long long)t->dilations[1], (long long)t->side,
        t->depthwise ? ", depthwise" : "", t->bias ? ", bias" : "", t->residual ? ", residual" : "",
        t->activation ? ", " : "", t->activation ? t->activation : "");
}

static void check_numbers(clg_session *session, const conv_run *r, const char *place)
{
    const double tolerance = r->t.side == 4 ? 8e-6 : 2e-6, scale = sqrt((double)terms_of(r));
    clg_value *got;
    assert_ok(clg_session_get_output(session, "y", &got));
    assert_int_equal(clg_value_rank(got), r->y_dims.rank);
    for (int i = 0; i < r->y_dims.rank; i++)
        assert_int_equal(clg_value_dims(got)[i], r->y_dims.dims[i]);
    for (int64_t i = 0; i < r->t.n * r->m * r->oh * r->ow; i++) {
        const double x = clg_value_get_double(got, turned(&r->y_dims, r->m, i)), want = r->y[i];
        if (fabs(x - want) <= tolerance * fmax(fabs(want), scale)) continue;
        describe(r);
        fail_msg("on %s: element %lld in NCHW order is %.9g where %.9g is right", place,
                 (long long)i, x, want);
    }
    clg_value_free(got);
}

static void check_result(clg_context *context, const clg_session_options *options,
                         const conv_run *r, const char *place)
{
    clg_session *session;
    if (run_model(context, options, r, &session) != CLG_OK) {
        describe(r);
        fail_msg("on %s: %s", place, clg_last_error());
    }
    check_way(session, &r->t, place);
    check_numbers(session, r, place);
    clg_session_free(session);
}

/* Oclgrind 21.10 gives 1 for ~true in vectors of truths, which the compiler makes of common/exp.clh. */
static bool is_mistaken_by_oclgrind(const conv_case *t)
{
    return t->activation && strcmp(t->activation, "Sigmoid") == 0;
}

static void run_case(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    conv_run r = sizes_on(user, context);
    clg_session_options own = *options;
    const device_caps *caps = ocl_context_caps(context->ocl);
    make_numbers(&r);
    if (own.kernels != CLG_KERNELS_WIDE && !r.t.plain && r.t.n > 0) {
        check_refused(context, options, &r, CLG_ERROR_UNSUPPORTED_DEVICE, "blocks of");
        if (!caps->is_software) return;
        own.kernels = CLG_KERNELS_WIDE;
    }
    if (caps->is_software && multiply_adds(&r) > MOST_SIMULATED) return;
    if (caps->family == PLATFORM_OCLGRIND && is_mistaken_by_oclgrind(&r.t)) return;
    expect(&r);
    check_result(context, &own, &r, place);
}

static void check_all(const conv_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        conv_case t = cases[i];
        run_node_each(run_case, &t);
    }
}

/* ---- cases -------------------------------------------------------------------------------------------- */

#define ONES                                                                                       \
    {                                                                                              \
        1, 1, 1, 1                                                                                 \
    }

/* Images, blocks of channels in and out, height and width, those of the kernel. */
#define CONV(images, blocks, to, height, width, k_height, k_width)                                 \
    .n = images, .c_blocks = blocks, .m_blocks = to, .h = height, .w = width,                      \
    .kernel = {k_height, k_width}

static void conv_blocked__points(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 1, 1, 1, 1)},
        {CONV(1, 1, 1, 5, 7, 1, 1), .bias = true},
        {CONV(1, 3, 3, 7, 5, 1, 1), .bias = true},
        {CONV(3, 2, 4, 3, 13, 1, 1)},
        {CONV(2, 2, 3, 9, 7, 1, 1), .strides = {2, 2}},
        {CONV(1, 3, 1, 8, 6, 1, 1), .strides = {2, 2}},
        {CONV(1, 1, 2, 3, 4, 1, 1), .pads = {1, 0, 2, 3}},
    };
    check_all(cases, COUNT(cases));
}

static void conv_blocked__windows(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 3, 3, 3, 3)},
        {CONV(1, 1, 1, 1, 1, 3, 3), .pads = ONES},
        {CONV(2, 2, 3, 7, 9, 3, 3), .pads = ONES},
        {CONV(1, 3, 1, 5, 13, 3, 3), .bias = true},
        {CONV(2, 1, 2, 8, 11, 3, 3), .pads = {0, 1, 2, 0}, .strides = {2, 2}, .bias = true},
        {CONV(1, 1, 1, 11, 10, 3, 3), .strides = {3, 3}},
        {CONV(1, 2, 1, 13, 17, 3, 3), .pads = ONES, .strides = {4, 4}},
        {CONV(1, 1, 3, 9, 14, 2, 5), .pads = {0, 2, 1, 2}, .strides = {3, 4}},
        {CONV(1, 1, 2, 14, 15, 4, 2), .strides = {4, 3}},
        {CONV(1, 2, 1, 11, 7, 5, 3), .dilations = {2, 1}},
        {CONV(1, 1, 3, 9, 8, 5, 3), .pads = {4, 1, 3, 1}, .dilations = {2, 1}, .bias = true},
        {CONV(2, 1, 1, 10, 13, 3, 3), .pads = {2, 3, 2, 3}, .strides = {2, 2}, .dilations = {2, 3}},
        {CONV(1, 1, 1, 2, 3, 3, 3), .pads = {5, 4, 6, 7}},
    };
    check_all(cases, COUNT(cases));
}

static void conv_blocked__auto_pad(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 7, 6, 3, 3), .pads = {1, 0, 1, 1}, .strides = {2, 2},
         .auto_pad = "SAME_UPPER"},
        {CONV(1, 2, 1, 5, 6, 4, 3), .pads = {2, 1, 1, 1}, .auto_pad = "SAME_LOWER"},
        {CONV(1, 1, 3, 5, 6, 3, 2), .auto_pad = "VALID"},
        {CONV(1, 2, 1, 7, 9, 3, 3), .pads = ONES, .auto_pad = "SAME_UPPER", .side = 4},
    };
    check_all(cases, COUNT(cases));
}

/* Of 20 blocks of 16 channels, not all pixels of a window of 16x16 fit in private memory; of narrower ones, those of 40. */
static void conv_blocked__large_kernels(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 17, 18, 16, 16)},
        {CONV(1, 3, 1, 17, 18, 16, 16), .bias = true},
        {CONV(1, 20, 1, 17, 18, 16, 16), .pads = ONES, .bias = true},
        {CONV(1, 20, 3, 17, 18, 16, 16), .pads = {0, 1, 1, 0}},
        {CONV(1, 40, 1, 15, 16, 16, 16), .pads = ONES},
    };
    check_all(cases, COUNT(cases));
}

static void conv_blocked__sums_wait_between_chunks(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 20, 3, 7, 9, 3, 3), .pads = ONES, .bias = true, .residual = true,
         .activation = "Relu"},
        {CONV(2, 20, 1, 5, 7, 3, 3), .bias = true},
        {CONV(1, 40, 3, 7, 11, 1, 1), .bias = true},
        {CONV(2, 70, 1, 3, 5, 1, 1)},
        {CONV(1, 40, 2, 7, 9, 1, 1), .strides = {2, 2}},
        {CONV(1, 20, 1, 6, 7, 5, 5), .pads = {2, 2, 2, 2}},
    };
    check_all(cases, COUNT(cases));
}

static void conv_blocked__wide_maps(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 2, 3, 3, 263, 1, 1), .bias = true},
        {CONV(2, 1, 1, 5, 131, 3, 3), .pads = ONES},
        {CONV(1, 1, 2, 5, 131, 3, 3)},
        {CONV(1, 1, 1, 131, 3, 3, 3), .pads = ONES},
        {CONV(7, 1, 1, 3, 3, 3, 3), .pads = ONES},
    };
    check_all(cases, COUNT(cases));
}

#define TAIL(...)                                                                                  \
    {                                                                                              \
        CONV(2, 1, 3, 5, 7, 3, 3), .pads = ONES, __VA_ARGS__                                       \
    }

static void conv_blocked__tails(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        TAIL(.residual = true),
        TAIL(.bias = true, .residual = true),
        TAIL(.activation = "Relu"),
        TAIL(.bias = true, .residual = true, .activation = "Relu"),
        TAIL(.bias = true, .activation = "LeakyRelu", .alpha = 0.3f),
        TAIL(.residual = true, .activation = "HardSwish"),
        TAIL(.bias = true, .activation = "Sigmoid"),
        {CONV(1, 2, 1, 5, 7, 1, 1), .residual = true, .activation = "LeakyRelu", .alpha = 0.125f},
    };
    check_all(cases, COUNT(cases));
}

static void conv_blocked__pictures(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 3, 4};
    static const conv_case cases[] = {
        {CONV(2, 0, 1, 15, 17, 7, 7), .pads = {3, 3, 3, 3}, .strides = {2, 2}, .bias = true,
         .activation = "Relu"},
        {CONV(1, 0, 3, 7, 9, 3, 3), .pads = ONES},
        {CONV(1, 0, 2, 6, 31, 3, 3), .bias = true, .residual = true},
        {CONV(2, 0, 1, 5, 7, 1, 1)},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(channels); k++) {
            conv_case t = cases[i];
            t.picture = channels[k];
            check_all(&t, 1);
        }
}

static void conv_blocked__winograd(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 1, 1, 3, 3, 3, 3)},
        {CONV(1, 1, 1, 1, 1, 3, 3), .pads = ONES},
        {CONV(2, 3, 1, 7, 6, 3, 3), .pads = {0, 1, 2, 0}},
        {CONV(1, 1, 3, 9, 17, 3, 3), .pads = ONES, .bias = true},
        {CONV(1, 5, 2, 2, 5, 3, 3), .pads = {3, 4, 0, 5}, .bias = true},
        {CONV(7, 3, 3, 7, 7, 3, 3), .pads = ONES, .bias = true},
        {CONV(1, 1, 1, 3, 263, 3, 3), .pads = ONES},
        {CONV(2, 5, 3, 10, 17, 3, 3), .pads = ONES, .bias = true, .residual = true,
         .activation = "Relu"},
        {CONV(1, 1, 1, 5, 6, 3, 3), .residual = true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int64_t side = 2; side <= 4; side += 2) {
            conv_case t = cases[i];
            t.side = side;
            check_all(&t, 1);
        }
}

static void conv_blocked__last_block_lacks_channels(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(2, 1, 1, 5, 7, 1, 1), .c_less = 3, .m_less = 1, .bias = true},
        {CONV(2, 2, 3, 5, 7, 3, 3), .c_less = 1, .m_less = 3, .pads = ONES, .bias = true,
         .residual = true, .activation = "Relu"},
        {CONV(1, 2, 2, 5, 7, 3, 3), .m_less = 2},
        {CONV(2, 0, 2, 9, 7, 3, 3), .picture = 3, .m_less = 3, .strides = {2, 2}, .bias = true},
        {CONV(2, 3, 2, 7, 9, 3, 3), .c_less = 1, .m_less = 3, .pads = ONES, .bias = true,
         .residual = true, .side = 2},
        {CONV(2, 2, 3, 7, 9, 3, 3), .c_less = 3, .m_less = 1, .pads = ONES, .bias = true,
         .activation = "Relu", .side = 4},
    };
    check_all(cases, COUNT(cases));
}

static void conv_blocked__depthwise(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(1, 1, 0, 5, 7, 3, 3), .pads = ONES, .bias = true},
        {CONV(3, 3, 0, 9, 8, 3, 3), .pads = {0, 1, 2, 0}, .strides = {2, 2}},
        {CONV(2, 2, 0, 7, 11, 5, 5), .c_less = 3, .pads = {2, 2, 2, 2}, .bias = true,
         .residual = true, .activation = "HardSwish"},
        {CONV(1, 2, 0, 11, 13, 3, 2), .dilations = {2, 3}},
        {CONV(1, 1, 0, 3, 131, 3, 7), .pads = {1, 3, 1, 3}},
        {CONV(1, 1, 0, 1, 1, 3, 3), .c_less = 1, .pads = ONES},
        {CONV(2, 1, 0, 13, 15, 3, 3), .pads = ONES, .strides = {3, 4}, .bias = true,
         .activation = "LeakyRelu", .alpha = 0.3f},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        conv_case t = cases[i];
        t.depthwise = true;
        check_all(&t, 1);
    }
}

/* Nothing is planned, and so nothing refused. */
static void conv_blocked__no_images(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {CONV(0, 2, 3, 5, 7, 3, 3), .pads = ONES},
        {CONV(0, 1, 1, 5, 7, 3, 3), .side = 2},
        {CONV(0, 0, 1, 5, 7, 1, 1), .picture = 3, .residual = true},
    };
    check_all(cases, COUNT(cases));
}

/* In NCHW order all classes of kernels compute it, so that one runs on every device. */
static void conv_blocked__plain_maps_do_with_all_kernels(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        TAIL(.bias = true, .residual = true, .activation = "Relu", .plain = true),
        {CONV(1, 0, 1, 5, 6, 3, 3), .picture = 3, .plain = true},
    };
    check_all(cases, COUNT(cases));
}

static const conv_case small = {CONV(1, 1, 1, 3, 5, 1, 1)};

static void refuse(clg_context *context, const clg_session_options *options, const char *place,
                   void *user)
{
    (void)place;
    (void)user;
    conv_run r = sizes_on(&small, context);
    r.depth += 1;
    make_numbers(&r);
    check_refused(context, options, &r, CLG_ERROR_SHAPE, "not fit a weight of");

    r = sizes_on(&small, context);
    r.x_dims.rank = 3;
    make_numbers(&r);
    check_refused(context, options, &r, CLG_ERROR_SHAPE, "has rank 3 and the weight 4");

    r = sizes_on(&small, context);
    r.lanes = 0;
    make_numbers(&r);
    check_refused(context, options, &r, CLG_ERROR_INVALID_MODEL, "no lanes");

    r = sizes_on(&small, context);
    r.lanes /= 2;
    make_numbers(&r);
    check_refused(context, options, &r, CLG_ERROR_UNSUPPORTED_DEVICE, "not those of the device");

    r = sizes_on(&small, context);
    r.x_dims.dims[1] *= 2;
    r.x_dims.dims[4] /= 2;
    make_numbers(&r);
    check_refused(context, options, &r, CLG_ERROR_UNSUPPORTED_DEVICE, "not those of the device");
}

static void conv_blocked__refusals(void **state)
{
    (void)state;
    run_node_each(refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_blocked__points),
        cmocka_unit_test(conv_blocked__windows),
        cmocka_unit_test(conv_blocked__auto_pad),
        cmocka_unit_test(conv_blocked__large_kernels),
        cmocka_unit_test(conv_blocked__sums_wait_between_chunks),
        cmocka_unit_test(conv_blocked__wide_maps),
        cmocka_unit_test(conv_blocked__tails),
        cmocka_unit_test(conv_blocked__pictures),
        cmocka_unit_test(conv_blocked__winograd),
        cmocka_unit_test(conv_blocked__last_block_lacks_channels),
        cmocka_unit_test(conv_blocked__depthwise),
        cmocka_unit_test(conv_blocked__no_images),
        cmocka_unit_test(conv_blocked__plain_maps_do_with_all_kernels),
        cmocka_unit_test(conv_blocked__refusals),
    };
    return cmocka_run_group_tests(tests, run_node_open, run_node_close);
}
