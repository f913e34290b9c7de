/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Resize (opsets 10, 11, 13, 18, 19) and Upsample (7, 9). Every resized axis has a table on
 * the device: for each output, the index of its first input element and the weights. One pass
 * resizes up to three adjacent axes. Kernels: cl/vision/resize.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/vision/resize_axis.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Values of P_MODE (resize_mode) and P_NEAREST (nearest_mode) of cl/vision/resize.cl. */
typedef enum resize_mode { MODE_NEAREST, MODE_LINEAR, MODE_CUBIC } resize_mode;
typedef enum nearest_mode { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } nearest_mode;
typedef enum aspect_policy { STRETCH, NOT_LARGER, NOT_SMALLER } aspect_policy;

/* In the order of the enumerations. Before opset 11, bilinear and trilinear are linear. */
static const char *const old_mode_words[] = {"nearest", "linear", "bilinear", "trilinear", NULL};
static const char *const mode_words[] = {"nearest", "linear", "cubic", NULL};
static const char *const nearest_words[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
static const char *const policy_words[] = {"stretch", "not_larger", "not_smaller", NULL};

/* The attributes of Resize and Upsample in all versions. */
typedef struct resize_setting {
    resize_mode mode;
    nearest_mode nearest;
    resize_coordinates coordinates;
    aspect_policy policy;
    bool exclude_outside, antialias;
    bool simple_nearest; /* opset 10: ceil to shrink, floor to enlarge */
    float cubic_a, extrapolation;
} resize_setting;

/* Indices of the inputs in an operator version. */
typedef struct resize_inputs {
    size_t roi, scales, sizes; /* NO_INPUT: not in this version */
} resize_inputs;
#define NO_INPUT ((size_t)99)

static const resize_inputs upsample_7 = {NO_INPUT, NO_INPUT,
                                         NO_INPUT};             /* scales are an attribute */
static const resize_inputs resize_10 = {NO_INPUT, 1, NO_INPUT}; /* and Upsample 9 */
static const resize_inputs resize_11 = {1, 2, 3};

static resize_mode read_mode(const node *n)
{
    if (n->opset >= 11) return (resize_mode)op_word(n, "mode", "nearest", mode_words);
    return op_word(n, "mode", "nearest", old_mode_words) == 0 ? MODE_NEAREST : MODE_LINEAR;
}

static clg_status read_setting(const node *n, resize_setting *out)
{
    const bool old = n->opset < 11;
    *out = (resize_setting){
        .mode = read_mode(n),
        .nearest = (nearest_mode)op_word(n, "nearest_mode", old ? "floor" : "round_prefer_floor",
                                         nearest_words),
        .coordinates =
            (resize_coordinates)op_word(n, "coordinate_transformation_mode",
                                        old ? "asymmetric" : "half_pixel", resize_coordinate_words),
        .policy = (aspect_policy)op_word(n, "keep_aspect_ratio_policy", "stretch", policy_words),
        .exclude_outside = node_int(n, "exclude_outside", 0) != 0,
        .antialias = node_int(n, "antialias", 0) != 0,
        .simple_nearest = strcmp(n->op_type, "Resize") == 0 && old,
        .cubic_a = node_float(n, "cubic_coeff_a", -0.75f),
        .extrapolation = node_float(n, "extrapolation_value", 0.0f),
    };
    if (out->antialias && out->mode == MODE_NEAREST) {
        char shown[NODE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s requests antialias, which nearest does not have", node_text(n, shown));
    }
    return CLG_OK;
}

static clg_status resize_check(const node *n)
{
    resize_setting setting;
    return read_setting(n, &setting);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The scales, output sizes and regions that inputs and attributes request, by axis of x. */
typedef struct resize_request {
    int rank;
    float scales[CLG_MAX_RANK]; /* 1 where an axis is not named or sizes are given */
    int64_t outputs[CLG_MAX_RANK];
    float roi[2 * CLG_MAX_RANK]; /* starts, ends */
    bool from_sizes;
    int64_t ratio_num,
        ratio_den; /* scale of all named axes, given sizes and an aspect policy; else 0 */
    bool named[CLG_MAX_RANK];
} resize_request;

/* The values of the inputs other than the image; NULL where absent. */
typedef struct resize_contents {
    const tensor *roi, *scales, *sizes;
    const float *scale_list; /* attribute scales (Upsample 7) */
    size_t n_scale_list;
} resize_contents;

typedef struct axis_list {
    int axes[CLG_MAX_RANK];
    size_t count;
} axis_list;

static clg_status fail(const node *n, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_SHAPE, "%s: %s", node_text(n, shown), what);
}

static clg_status read_axes(const node *n, int rank, axis_list *out)
{
    size_t count;
    const int64_t *values = node_ints(n, "axes", &count);
    bool seen[CLG_MAX_RANK] = {false};
    out->count = values ? count : (size_t)rank;
    if (out->count > (size_t)rank) return fail(n, "axes names more axes than there are");
    for (size_t i = 0; i < out->count; i++) {
        out->axes[i] = (int)i;
        if (values) CLG_TRY(shape_axis(values[i], rank, "axes", &out->axes[i]));
        if (seen[out->axes[i]]) return fail(n, "axes names an axis twice");
        seen[out->axes[i]] = true;
    }
    return CLG_OK;
}

static clg_status take_scales(const node *n, const shape *x, const axis_list *list,
                              const resize_contents *from, resize_request *out)
{
    size_t count = from->scales ? (size_t)from->scales->n_elements : from->n_scale_list;
    if (count != list->count) return fail(n, "scales does not have one number for each axis");
    for (size_t i = 0; i < list->count; i++) {
        const int axis = list->axes[i];
        const float scale =
            from->scales ? (float)tensor_get_float(from->scales, (int64_t)i) : from->scale_list[i];
        const float size = floorf((float)x->dims[axis] * scale);
        if (!(scale > 0) || !(size < (float)INT32_MAX))
            return fail(n, "scales holds a number that is not positive or makes an axis too long");
        out->scales[axis] = scale;
        out->outputs[axis] = (int64_t)size;
    }
    return CLG_OK;
}

static clg_status take_sizes(const node *n, const shape *x, const axis_list *list,
                             const tensor *sizes, aspect_policy policy, resize_request *out)
{
    if ((size_t)sizes->n_elements != list->count)
        return fail(n, "sizes does not have one number for each axis");
    out->from_sizes = true;
    double best = 0;
    for (size_t i = 0; i < list->count; i++) {
        const int axis = list->axes[i];
        const int64_t size = tensor_get_int(sizes, (int64_t)i), in = x->dims[axis];
        if (size < 0 || size > INT32_MAX || (size > 0 && in == 0))
            return fail(n, "sizes holds a number that no axis can be resized to");
        out->outputs[axis] = size;
        const double scale = in > 0 ? (double)size / (double)in : 0;
        if (in == 0 || policy == STRETCH) continue;
        if (out->ratio_den == 0 || (policy == NOT_LARGER ? scale < best : scale > best)) {
            best = scale;
            out->ratio_num = size;
            out->ratio_den = in;
        }
    }
    for (size_t i = 0; i < list->count && out->ratio_den > 0; i++) {
        const int axis = list->axes[i];
        out->outputs[axis] = (int64_t)floor(best * (double)x->dims[axis] + 0.5);
    }
    return CLG_OK;
}

static clg_status take_roi(const node *n, const axis_list *list, const tensor *roi,
                           resize_request *out)
{
    for (int i = 0; i < out->rank; i++) {
        out->roi[i] = 0;
        out->roi[out->rank + i] = 1;
    }
    if (!roi) return CLG_OK;
    if ((size_t)roi->n_elements != 2 * list->count)
        return fail(n, "roi does not have a start and an end for each axis");
    for (int64_t i = 0; i < roi->n_elements; i++) {
        if (!(fabs(tensor_get_float(roi, i)) < 1e6))
            return fail(n, "roi holds a number that is not inside an image");
    }
    for (size_t i = 0; i < list->count; i++) {
        out->roi[list->axes[i]] = (float)tensor_get_float(roi, (int64_t)i);
        out->roi[out->rank + list->axes[i]] =
            (float)tensor_get_float(roi, (int64_t)(list->count + i));
    }
    return CLG_OK;
}

/* Reads the request of a node for an input of shape x, whose dimensions must be known. */
static clg_status read_request(const node *n, const shape *x, const resize_setting *setting,
                               const resize_contents *from, resize_request *out)
{
    axis_list list;
    *out = (resize_request){.rank = x->rank};
    CLG_TRY(read_axes(n, x->rank, &list));
    for (int i = 0; i < x->rank; i++) {
        out->scales[i] = 1;
        out->outputs[i] = x->dims[i];
    }
    for (size_t i = 0; i < list.count; i++) out->named[list.axes[i]] = true;
    const bool has_sizes = from->sizes && from->sizes->n_elements > 0;
    if (setting->coordinates == COORDINATES_CROP)
        CLG_TRY(take_roi(n, &list, from->roi && from->roi->n_elements > 0 ? from->roi : NULL, out));
    if (has_sizes) return take_sizes(n, x, &list, from->sizes, setting->policy, out);
    return take_scales(n, x, &list, from, out);
}

static clg_status resize_infer(op_context *c)
{
    const resize_inputs *where = c->row->param;
    const shape *x = &op_input(c, 0)->dims;
    resize_setting setting;
    resize_contents contents = {0};
    resize_request request;
    CLG_TRY(read_setting(c->node, &setting));
    shape y = *x;
    for (int i = 0; i < y.rank; i++) y.dims[i] = DIM_UNKNOWN;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    contents.scale_list = node_floats(c->node, "scales", &contents.n_scale_list);
    /* An empty list stands for an absent input. */
    const bool by_sizes =
        op_has_input(c, where->sizes) && op_input(c, where->sizes)->dims.dims[0] != 0;
    if (by_sizes)
        contents.sizes = op_need(c, where->sizes);
    else if (where->scales != NO_INPUT)
        contents.scales = op_need(c, where->scales);
    if (setting.coordinates == COORDINATES_CROP) contents.roi = op_need(c, where->roi);
    if (!by_sizes && where->scales != NO_INPUT && !op_has_input(c, where->scales))
        return op_error(c, CLG_ERROR_INVALID_MODEL, "neither scales nor sizes is given");
    if (c->needs != 0 || !shape_is_known(x)) return CLG_OK;
    CLG_TRY(read_request(c->node, x, &setting, &contents, &request));
    for (int i = 0; i < y.rank; i++) y.dims[i] = request.outputs[i];
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* ---- lowering -------------------------------------------------------------------------------- */

/* One pass: a run of n_axes adjacent resized axes from `first` on; the tensor is [outer, these
 * axes, inner]. */
typedef struct resize_pass {
    int first, n_axes;
    int64_t outer, inner;
} resize_pass;

/* The state of a node's lowering, which its passes use one after the other. */
typedef struct resize_job {
    resize_setting setting;
    resize_axis axes[CLG_MAX_RANK];
    int64_t dims[CLG_MAX_RANK]; /* of the input of the next pass */
    int rank;
    clg_dtype dtype;
} resize_job;

/* The filter of an axis: n taps (input elements) per output, `before` of which precede its
 * position; `shrink` is the scale of the filter's argument, below 1 with antialias. */
typedef struct resize_taps {
    int64_t n, before;
    double shrink;
    bool renormalise;
} resize_taps;

static resize_taps count_taps(const resize_setting *s, const resize_axis *a)
{
    if (s->mode == MODE_NEAREST) return (resize_taps){1, 0, 1.0, false};
    const double scale = resize_axis_scale(a), reach = s->mode == MODE_CUBIC ? 2.0 : 1.0;
    const bool stretched = s->antialias && scale < 1.0;
    const double shrink = stretched ? scale : 1.0;
    const int64_t before = -(int64_t)floor(-reach / shrink) - 1;
    return (resize_taps){2 + 2 * before, before, shrink, stretched || s->exclude_outside};
}

static const char *resize_prelude(lower_context *c, const resize_job *job, int n_axes)
{
    const resize_setting *s = &job->setting;
    nearest_mode nearest = s->mode == MODE_NEAREST ? s->nearest : PREFER_FLOOR;
    return prelude_text(
        &c->build, "P_MODE=%d P_AXES=%d P_NEAREST=%d P_EXCLUDE=%d P_BORDER=%d P_T=%d P_VEC=1",
        (int)s->mode, n_axes, (int)nearest, s->exclude_outside && s->mode != MODE_NEAREST,
        s->coordinates == COORDINATES_CROP, (int)job->dtype);
}

/* The tables of a pass: for each output of an axis, the index of its first input element and its
 * weights; one axis after the other. */
typedef struct resize_tables {
    operand firsts, weights;
    clg_dtype weight_dtype;
} resize_tables;

static resize_tables add_tables(lower_context *c, candidate *impl, const resize_job *job,
                                const resize_pass *p)
{
    step_builder *b = &c->build;
    int64_t n_firsts = 0, n_weights = 0;
    for (int i = p->first; i < p->first + p->n_axes; i++) {
        n_firsts += job->axes[i].out;
        n_weights += job->axes[i].out * count_taps(&job->setting, &job->axes[i]).n;
    }
    resize_tables t = {.weight_dtype = job->dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32};
    t.firsts = step_scratch(b, impl, (size_t)n_firsts * sizeof(int32_t));
    t.weights = job->setting.mode == MODE_NEAREST
                    ? t.firsts
                    : step_scratch(b, impl, (size_t)n_weights * dtype_size(t.weight_dtype));
    operand firsts = t.firsts, weights = t.weights;
    for (int i = p->first; i < p->first + p->n_axes; i++) {
        const resize_axis *a = &job->axes[i];
        const resize_taps taps = count_taps(&job->setting, a);
        step *k = step_kernel(b, impl, "resize", "resize_table", resize_prelude(c, job, p->n_axes));
        STEP_BUFFERS(b, k, {firsts, CLG_INT32}, {weights, t.weight_dtype});
        STEP_INTS(b, k, a->in, a->out, taps.n, taps.before);
        STEP_LONGS(b, k, a->step, a->shift, a->unit);
        STEP_FLOATS(b, k, taps.shrink, job->setting.cubic_a);
        step_arg_int(b, k, taps.renormalise);
        work_range_1d(c, k, a->out, 16);
        firsts.offset_elems += a->out;
        weights.offset_elems += a->out * taps.n;
    }
    return t;
}

static void add_pass(lower_context *c, candidate *impl, const resize_job *job, const resize_pass *p,
                     operand from, operand to)
{
    step_builder *b = &c->build;
    const resize_tables tables = add_tables(c, impl, job, p);
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, taps[3] = {1, 1, 1};
    for (int i = 0; i < p->n_axes; i++) {
        const resize_axis *a = &job->axes[p->first + i];
        const int at = 3 - p->n_axes + i;
        in[at] = a->in;
        out[at] = a->out;
        taps[at] = count_taps(&job->setting, a).n;
    }
    step *k = step_kernel(b, impl, "resize", "resize_gather", resize_prelude(c, job, p->n_axes));
    k->label = mode_words[job->setting.mode];
    STEP_BUFFERS(b, k, {from, job->dtype}, {to, job->dtype}, {tables.firsts, CLG_INT32},
                 {tables.weights, tables.weight_dtype});
    step_arg_int(b, k, p->outer);
    step_arg_ints(b, k, 3, in);
    step_arg_ints(b, k, 3, out);
    step_arg_ints(b, k, 3, taps);
    step_arg_int(b, k, p->inner);
    step_arg_float(b, k, job->setting.extrapolation);
    const double n = (double)(p->outer * out[0] * out[1] * out[2] * p->inner);
    k->flops = n * 2.0 * (double)(taps[0] * taps[1] * taps[2]);
    k->bytes = n * (double)dtype_size(job->dtype);
    work_range_rows(c, k, out[2] * p->inner, p->outer * out[0] * out[1]);
}

/* Returns the next run of one to three adjacent resized axes at or after `from`; n_axes is 0 if
 * there is none. */
static resize_pass next_pass(const resize_job *job, int from)
{
    resize_pass p = {.first = from, .outer = 1, .inner = 1};
    while (p.first < job->rank && job->axes[p.first].identity) p.first++;
    while (p.first + p.n_axes < job->rank && !job->axes[p.first + p.n_axes].identity &&
           p.n_axes < 3)
        p.n_axes++;
    for (int i = 0; i < p.first; i++) p.outer *= job->dims[i];
    for (int i = p.first + p.n_axes; i < job->rank; i++) p.inner *= job->dims[i];
    return p;
}

static void add_passes(lower_context *c, resize_job *job)
{
    step_builder *b = &c->build;
    const size_t elem_bytes = dtype_size(job->dtype);
    candidate *impl = step_candidate(b, "resize");
    operand from = operand_input(0);
    resize_pass p = next_pass(job, 0);
    int64_t n = 1;
    for (int i = 0; i < job->rank; i++) n *= job->dims[i];
    if (p.n_axes == 0) step_copy(b, impl, from, operand_output(0), (size_t)n * elem_bytes);
    while (p.n_axes > 0) {
        const resize_pass after = next_pass(job, p.first + p.n_axes);
        n = p.outer * p.inner;
        for (int i = p.first; i < p.first + p.n_axes; i++) {
            job->dims[i] = job->axes[i].out;
            n *= job->dims[i];
        }
        const operand to =
            after.n_axes == 0 ? operand_output(0) : step_scratch(b, impl, (size_t)n * elem_bytes);
        add_pass(c, impl, job, &p, from, to);
        from = to;
        p = next_pass(job, p.first + p.n_axes);
    }
}

static void make_axes(resize_job *job, const resize_request *request)
{
    for (int i = 0; i < job->rank; i++) {
        resize_axis *a = &job->axes[i];
        *a = (resize_axis){.in = job->dims[i],
                           .out = request->outputs[i],
                           .scale = request->scales[i],
                           .roi_start = request->roi[i],
                           .roi_end = request->roi[job->rank + i]};
        if (request->named[i] && request->ratio_den > 0) {
            a->scale_num = request->ratio_num;
            a->scale_den = request->ratio_den;
        } else if (request->named[i] && request->from_sizes) {
            a->scale_num = a->out;
            a->scale_den = a->in;
        }
        resize_axis_place(a, job->setting.coordinates);
    }
}

static clg_status resize_lower(lower_context *c)
{
    const resize_inputs *where = c->row->param;
    const lower_operand *x = lower_input(c, 0), *y = &c->outputs[0];
    resize_job job = {.rank = x->dims.rank, .dtype = x->dtype};
    resize_contents contents = {.roi = lower_input(c, where->roi)->known,
                                .scales = lower_input(c, where->scales)->known,
                                .sizes = lower_input(c, where->sizes)->known};
    resize_request request;
    int64_t n;
    CLG_TRY(work_check_dtype(c, x->dtype));
    CLG_TRY(read_setting(c->node, &job.setting));
    const bool small = x->dtype == CLG_INT8 || x->dtype == CLG_UINT8 || x->dtype == CLG_INT16 ||
                       x->dtype == CLG_UINT16;
    if (job.setting.mode != MODE_NEAREST && !dtype_is_float(x->dtype) && !small)
        return lower_error(c, CLG_ERROR_UNSUPPORTED_DTYPE, "mode %s does not interpolate %s",
                           mode_words[job.setting.mode], dtype_name(x->dtype));
    contents.scale_list = node_floats(c->node, "scales", &contents.n_scale_list);
    CLG_TRY(read_request(c->node, &x->dims, &job.setting, &contents, &request));
    CLG_TRY(shape_n_elements(&y->dims, &n));
    for (int i = 0; i < job.rank; i++) job.dims[i] = x->dims.dims[i];
    if (n == 0) {
        (void)step_candidate(&c->build, "resize");
        return CLG_OK;
    }
    make_axes(&job, &request);
    bool shrinks = false;
    for (int i = 0; i < job.rank; i++) shrinks = shrinks || resize_axis_scale(&job.axes[i]) < 1.0;
    if (job.setting.simple_nearest) job.setting.nearest = shrinks ? CEIL : FLOOR;
    add_passes(c, &job);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

#define RESIZABLE (DTYPES_ALL_FIXED & ~DTYPE_BIT(CLG_BFLOAT16))
#define FLOATS (DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT64))
static const op_types types[] = {{'T', RESIZABLE},
                                 {'R', FLOATS},
                                 {'S', DTYPE_BIT(CLG_FLOAT32)},
                                 {'I', DTYPE_BIT(CLG_INT64)},
                                 {0}};

static const op_attribute upsample_7_attributes[] = {
    {"mode", ATTRIBUTE_STRING, false, OP_WORDS(old_mode_words)},
    {"scales", ATTRIBUTE_FLOATS, true, OP_ANY},
    {0}};
static const op_attribute old_attributes[] = {
    {"mode", ATTRIBUTE_STRING, false, OP_WORDS(old_mode_words)}, {0}};
static const op_attribute attributes[] = {
    {"mode", ATTRIBUTE_STRING, false, OP_WORDS(mode_words)},
    {"coordinate_transformation_mode", ATTRIBUTE_STRING, false, OP_WORDS(resize_coordinate_words)},
    {"nearest_mode", ATTRIBUTE_STRING, false, OP_WORDS(nearest_words)},
    {"cubic_coeff_a", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"exclude_outside", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"extrapolation_value", ATTRIBUTE_FLOAT, false, OP_ANY},
    {"antialias", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"axes", ATTRIBUTE_INTS, false, OP_ANY},
    {"keep_aspect_ratio_policy", ATTRIBUTE_STRING, false, OP_WORDS(policy_words)},
    {0}};

#define ROW(op_name, first, last, inputs, list, kind)                                              \
    {                                                                                              \
        .name = op_name, .grad = GRAD_BY(grad_pass_resize), .since = first, .until = last, inputs, \
        OP_OUTPUTS(1, 1, "T"), .types = types, .attributes = list, .check = resize_check,          \
        .infer = resize_infer,                                                                     \
        .batch = OP_BATCH(.pass = batch_pass_resize, .rows = 1, .counts = 8),                      \
        .lower = resize_lower, .param = &(kind)                                                    \
    }

const op_row op_rows_resize[] = {
    ROW("Upsample", 7, 8, OP_INPUTS(1, 1, "T"), upsample_7_attributes, upsample_7),
    ROW("Upsample", 9, 9, OP_INPUTS(2, 2, "TS"), old_attributes, resize_10),
    ROW("Resize", 10, 10, OP_INPUTS(2, 2, "TS"), old_attributes, resize_10),
    ROW("Resize", 11, 0, OP_INPUTS(1, 4, "TRSI"), attributes, resize_11),
};
const size_t n_op_rows_resize = sizeof op_rows_resize / sizeof *op_rows_resize;
