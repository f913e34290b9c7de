/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs test cases of clgraph.BlockedConv. See conv_blocked_case.h.
 */
#include "support/cases/conv_blocked_case.h"
#include "support/fixtures/sized_data.h"

#include "session/context_handle.h"
#include "session/exec/model.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

/* Multiply-adds of a case; larger cases are skipped on software devices. */
#define MAX_SIMULATED 300000
/* Larger cases are not computed by the kernel without tiles, too. */
#define MAX_DIRECT 4000000
/* If sums have more terms than this, inputs and weights are integers, so that sums are exact. */
#define LONG_SUM 4096

/* ---- the formula ----------------------------------------------------------------------------- */

static double activate(const conv_case *t, double v)
{
    if (!t->activation) return v;
    if (strcmp(t->activation, "Relu") == 0) return fmax(v, 0);
    if (strcmp(t->activation, "LeakyRelu") == 0) return v < 0 ? (double)t->alpha * v : v;
    if (strcmp(t->activation, "HardSwish") == 0) return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    assert_string_equal(t->activation, "Sigmoid");
    return 1 / (1 + exp(-v));
}

/* Returns the sum of products of kernel w with the window of an input plane whose first tap is at
 * (row, col). */
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

static bool is_activated(const conv_case *t, int which)
{
    return t->activated == 0 || (t->activated & which);
}

/* Returns the output of the 1x1 convolution that precedes the other one. */
static const double *go_through_points(const conv_run *r)
{
    const conv_case *t = &r->t;
    const int64_t plane = t->h * t->w, n = t->n * r->c * plane;
    double *e = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t o = i / plane % r->c;
        const double *x = r->x + i / plane / r->c * r->x_c * plane + i % plane;
        double sum = t->points_bias ? r->points_bias[o] : 0;
        for (int64_t k = 0; k < r->x_c; k++) sum += r->points[o * r->x_c + k] * x[k * plane];
        e[i] = is_activated(t, 1) ? activate(t, sum) : sum;
    }
    return e;
}

/* Returns x after the prologue. */
static const double *go_through_prologue(const conv_run *r)
{
    const int64_t plane = r->t.h * r->t.w, n = r->t.n * r->x_c * plane;
    double *e = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / plane % r->x_c;
        e[i] = r->scale[c] * r->x[i] + r->shift[c];
        if (r->t.prologue_relu) e[i] = fmax(e[i], 0);
    }
    return e;
}

static void expect(conv_run *r)
{
    const conv_case *t = &r->t;
    const double *map = t->x_blocks ? go_through_points(r)
                        : t->scaled ? go_through_prologue(r)
                                    : r->x;
    const int64_t plane = r->oh * r->ow, taps = t->kernel[0] * t->kernel[1];
    for (int64_t i = 0; i < t->n * r->m * plane; i++) {
        const int64_t image = i / plane / r->m, o = i / plane % r->m;
        const int64_t row = i / r->ow % r->oh * t->strides[0] - t->pads[0];
        const int64_t col = i % r->ow * t->strides[1] - t->pads[1];
        double sum = t->bias ? r->bias[o] : 0;
        const double *x = map + (image * r->c + (t->depthwise ? o : 0)) * t->h * t->w;
        for (int64_t k = 0; k < r->depth; k++)
            sum +=
                window_sum(t, x + k * t->h * t->w, r->weight + (o * r->depth + k) * taps, row, col);
        if (t->residual) sum += r->residual[i];
        r->y[i] = is_activated(t, 2) ? activate(t, sum) : sum;
    }
}

/* ---- data ------------------------------------------------------------------------------------ */

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

conv_run conv_case_on(const conv_case *t, clg_context *context)
{
    conv_run r = {.t = *t, .lanes = caps_simd_lanes(ocl_context_caps(context->current->ocl))};
    for (int i = 0; i < 2; i++) {
        if (r.t.strides[i] == 0) r.t.strides[i] = 1;
        if (r.t.dilations[i] == 0) r.t.dilations[i] = 1;
    }
    r.c = t->image ? t->image : t->c_blocks * r.lanes - t->c_less;
    r.depth = t->depthwise ? 1 : r.c;
    r.m = t->depthwise ? r.c : t->m_blocks * r.lanes - t->m_less;
    r.oh = outputs_of(&r.t, 0);
    r.ow = outputs_of(&r.t, 1);
    r.x_c = t->x_blocks ? t->x_blocks * r.lanes - t->x_less : r.c;
    r.x_dims = map_dims(&r, !t->image && !t->plain, r.x_c, t->h, t->w);
    r.y_dims = map_dims(&r, !t->plain, r.m, r.oh, r.ow);
    return r;
}

static int64_t weights_of(const conv_run *r) { return r->depth * r->t.kernel[0] * r->t.kernel[1]; }

static int64_t terms_of(const conv_run *r) { return weights_of(r) * (r->t.x_blocks ? r->x_c : 1); }

static int64_t multiply_adds(const conv_run *r)
{
    const int64_t points = r->t.x_blocks ? r->t.n * r->c * r->t.h * r->t.w * r->x_c : 0;
    return points + r->t.n * r->m * r->oh * r->ow * weights_of(r);
}

static const double *numbers(int64_t n, bool whole)
{
    double *x = run_node_random(n);
    for (int64_t i = 0; whole && i < n; i++) x[i] = rint(3 * x[i]);
    return x;
}

void conv_case_numbers(conv_run *r)
{
    const int64_t n_y = r->t.n * r->m * r->oh * r->ow;
    const bool whole = terms_of(r) > LONG_SUM;
    r->x = numbers(r->t.n * r->x_c * r->t.h * r->t.w, whole);
    r->scale = numbers((r->x_c + 1) * r->lanes, whole);
    r->shift = numbers((r->x_c + 1) * r->lanes, whole);
    r->points = numbers(r->t.x_blocks ? r->c * r->x_c : 0, whole);
    r->points_bias = numbers(r->c, whole);
    r->weight = numbers(r->m * weights_of(r), whole);
    r->bias = numbers(r->m, whole);
    r->residual = run_node_random(n_y);
    r->y = run_node_zeros(n_y);
}

/* Returns the index, in a feature map of shape s, of the element whose index in NCHW order is i. */
static int64_t blocked_index(const shape *s, int64_t channels, int64_t i)
{
    const int64_t plane = s->dims[2] * s->dims[3], lanes = s->dims[4];
    const int64_t image = i / plane / channels, c = i / plane % channels;
    if (s->rank == 4) return i;
    return ((image * s->dims[1] + c / lanes) * plane + i % plane) * lanes + c % lanes;
}

/* ---- the model ------------------------------------------------------------------------------- */

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
    if (t->activated) assert_ok(node_set_int(g, n, "activated", t->activated));
    if (t->prologue_relu) assert_ok(node_set_int(g, n, "prologue_relu", 1));
}

static clg_status make_model(const conv_run *r, clg_model **out_model)
{
    const conv_case *t = &r->t;
    const shape w = {.rank = 4, .dims = {r->m, r->depth, t->kernel[0], t->kernel[1]}};
    const shape b = {.rank = 1, .dims = {r->m}}, points_b = {.rank = 1, .dims = {r->c}};
    const shape points = {.rank = 4, .dims = {r->c, r->x_c, 1, 1}};
    const shape by_channel = {.rank = 4, .dims = {r->x_dims.dims[1], 1, 1, r->lanes}};
    value_id in[8] = {VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE,
                      VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE},
             y;
    graph *g;
    node_id n;
    assert_ok(graph_create("", &g));
    assert_ok(graph_set_opset(g, "clgraph", 1));
    in[0] = add_value(g, "x", &r->x_dims);
    in[1] = add_constant(g, "w", &w, r->weight);
    if (t->bias) in[2] = add_constant(g, "b", &b, r->bias);
    if (t->residual) in[3] = add_value(g, "r", &r->y_dims);
    if (t->x_blocks) in[4] = add_constant(g, "points", &points, r->points);
    if (t->points_bias) in[5] = add_constant(g, "points_b", &points_b, r->points_bias);
    if (t->scaled) in[6] = add_constant(g, "scale", &by_channel, r->scale);
    if (t->scaled && r->shift) in[7] = add_constant(g, "shift", &by_channel, r->shift);
    y = add_value(g, "y", NULL);
    assert_ok(graph_add_node(g, "clgraph", t->plain ? "FusedConv" : "BlockedConv", "tested",
                             t->scaled ? 8 : 6, in, 1, &y, &n));
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
    for (int64_t i = 0; i < n; i++)
        tensor_set_float(made, blocked_index(s, channels, i), numbers[i]);
    assert_ok(sized_input(session, name, CLG_FLOAT32, (size_t)s->rank, s->dims, made->data));
    tensor_free(made);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Creates the model and a session, and runs it. Returns the first error. */
static clg_status run_model(clg_context *context, const clg_session_options *options,
                            const conv_run *r, clg_session **out_session)
{
    clg_model *model = NULL;
    *out_session = NULL;
    clg_status status = make_model(r, &model);
    if (status == CLG_OK) status = clg_session_create(context, model, options, out_session);
    clg_model_free(model);
    if (status != CLG_OK) return status;
    set_input(*out_session, "x", &r->x_dims, r->x_c, r->x);
    if (r->t.residual) set_input(*out_session, "r", &r->y_dims, r->m, r->residual);
    return clg_session_run(*out_session);
}

void conv_case_refused(clg_context *context, const clg_session_options *options, const conv_run *r,
                       clg_status status, const char *words)
{
    clg_session *session;
    assert_error(run_model(context, options, r, &session), status, words);
    clg_session_free(session);
}

static const char *winograd_impl(const conv_case *t)
{
    return t->side == 2         ? t->strides[0] == 2 ? "winograd_polyphase_2x2" : "winograd_2x2"
           : t->side == 3       ? "winograd_strided_3x3"
           : t->strides[0] == 2 ? "winograd_strided_4x4"
                                : "winograd_4x4";
}

static void check_impl(clg_session *session, const clg_session_options *options, const conv_case *t,
                       const char *place)
{
    const char *impl = options->n_preferred_impls ? options->preferred_impls[0]
                       : t->x_blocks              ? "conv_expand_blocked"
                       : t->depthwise             ? "conv_depthwise_blocked"
                       : t->side == 0             ? "conv_blocked"
                                                  : winograd_impl(t);
    char *plan;
    if (t->plain && (t->side == 0 || options->kernels != CLG_KERNELS_SIMD)) return;
    if (t->n == 0) return;
    assert_ok(clg_session_plan_text(session, &plan));
    if (!strstr(plan, impl) || (t->side == 0 && strstr(plan, "winograd")))
        fail_msg("on %s: not by %s but\n%s", place, impl, plan);
    clg_text_free(plan);
}

static void describe(const conv_run *r)
{
    const conv_case *t = &r->t;
    print_error(
        "%lld images of %lld channels, %lld before, %lldx%lld, to %lld, blocks of %lld; kernel "
        "%lldx%lld, "
        "strides %lld %lld, pads %lld %lld %lld %lld, dilations %lld %lld, side %lld%s%s%s%s%s%s\n",
        (long long)t->n, (long long)r->c, (long long)r->x_c, (long long)t->h, (long long)t->w,
        (long long)r->m, (long long)r->lanes, (long long)t->kernel[0], (long long)t->kernel[1],
        (long long)t->strides[0], (long long)t->strides[1], (long long)t->pads[0],
        (long long)t->pads[1], (long long)t->pads[2], (long long)t->pads[3],
        (long long)t->dilations[0], (long long)t->dilations[1], (long long)t->side,
        t->depthwise ? ", depthwise" : "", t->scaled ? ", prologue" : "", t->bias ? ", bias" : "",
        t->residual ? ", residual" : "", t->activation ? ", " : "",
        t->activation ? t->activation : "");
}

static void check_numbers(clg_session *session, const conv_run *r, const char *place)
{
    const double tolerance = r->t.side > 2 ? 8e-6 : 2e-6, scale = sqrt((double)terms_of(r));
    clg_value *got;
    assert_ok(clg_session_get_output(session, "y", &got));
    assert_int_equal(clg_value_rank(got), r->y_dims.rank);
    for (int i = 0; i < r->y_dims.rank; i++)
        assert_int_equal(clg_value_dims(got)[i], r->y_dims.dims[i]);
    for (int64_t i = 0; i < r->t.n * r->m * r->oh * r->ow; i++) {
        const double x = clg_value_get_double(got, blocked_index(&r->y_dims, r->m, i)),
                     want = r->y[i];
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
    check_impl(session, options, &r->t, place);
    check_numbers(session, r, place);
    clg_session_free(session);
}

/* Returns whether Oclgrind 21.10 computes the case wrongly. It computes ~true as 1 in vectors of
 * booleans, which the compiler generates for functions/exp.clh. */
static bool is_mistaken_by_oclgrind(const conv_case *t)
{
    return t->activation && strcmp(t->activation, "Sigmoid") == 0;
}

static void run_case(clg_context *context, const clg_session_options *options, const char *place,
                     void *user)
{
    conv_run r = conv_case_on(user, context);
    clg_session_options own = *options;
    const char *apart = "conv_expand_apart", *direct = "conv_blocked_direct";
    const device_caps *caps = ocl_context_caps(context->current->ocl);
    conv_case_numbers(&r);
    own.preferred_impls = &apart;
    own.n_preferred_impls = r.t.apart;
    if (own.kernels != CLG_KERNELS_SIMD && !r.t.plain && r.t.n > 0) {
        conv_case_refused(context, options, &r, CLG_ERROR_UNSUPPORTED_DEVICE, "blocks of");
        if (!caps->is_software) return;
        own.kernels = CLG_KERNELS_SIMD;
    }
    if (caps->is_software && multiply_adds(&r) > MAX_SIMULATED) return;
    if (caps->family == PLATFORM_OCLGRIND && is_mistaken_by_oclgrind(&r.t)) return;
    expect(&r);
    check_result(context, &own, &r, place);
    if (r.t.plain || r.t.n == 0) return;
    if (multiply_adds(&r) > (caps->is_software ? MAX_SIMULATED / 100 : MAX_DIRECT)) return;
    own.preferred_impls = &direct;
    own.n_preferred_impls = 1;
    r.t.side = 0;
    check_result(context, &own, &r, place);
}

void conv_case_check(const conv_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        conv_case t = cases[i];
        run_node_each(run_case, &t);
    }
}
