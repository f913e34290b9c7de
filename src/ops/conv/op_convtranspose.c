/* SPDX-License-Identifier: Apache-2.0
 *
 * Infers and lowers ConvTranspose over one to three axes, and Col2Im. ConvTranspose is a matrix
 * product, which computes each input pixel's contributions to the outputs in its window, followed
 * by the kernel cl/conv/col2im.cl, which sums the overlapping windows. Col2Im is that kernel alone.
 */
#include "ops/batch/batch_rule.h"
#include "ops/conv/conv_desc.h"
#include "ops/conv/conv_transpose.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/window.h"
#include "ops/lowering/work.h"
#include "ops/matmul/gemm.h"

#include <inttypes.h>
#include <string.h>

#define LINE 256 /* P_LINE: output pixels of a work-item, whose sums take 1 KiB; estimated */
/* Work-items of col2im per core, each of which processes several lines, since one line takes less
 * time than starting a work-item. Estimated, not measured; checked by: cltool profile MODEL
 * (a GAN) */
#define GROUPS_PER_UNIT 16

/* Channels of a group in x and in y, at most, of convolutions that are computed directly where they
 * have several groups: depthwise ones. Estimated, not measured. */
#define MAX_DIRECT 4

/* ---- ConvTranspose: shapes ------------------------------------------------------------------- */

/* Reads value i of a list attribute with one value per axis, or `fallback` if it is absent. */
static clg_status axis_value(const node *n, const char *name, int n_axes, int i, int64_t fallback,
                             int64_t *out)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    char shown[NODE_TEXT_BYTES];
    *out = fallback;
    if (count == 0) return CLG_OK;
    /* output_shape may include batch and channels. */
    const size_t skip = strcmp(name, "output_shape") == 0 && count == (size_t)n_axes + 2 ? 2 : 0;
    if (count - skip != (size_t)n_axes)
        return error_set(CLG_ERROR_SHAPE, "%s: %s has %zu values where the input requires %d",
                         node_text(n, shown), name, count, n_axes);
    *out = values[skip + (size_t)i];
    return CLG_OK;
}

/* Computes padding and output size of an axis from the attributes; sizes may be DIM_UNKNOWN. */
static clg_status place_axis(const node *n, window_desc *s, int i)
{
    window_axis *a = &s->axes[i];
    const char *mode = node_string(n, "auto_pad", "NOTSET");
    const bool same = strncmp(mode, "SAME", 4) == 0;
    int64_t extra, wanted;
    char shown[NODE_TEXT_BYTES];
    CLG_TRY(axis_value(n, "output_padding", s->n_axes, i, 0, &extra));
    CLG_TRY(axis_value(n, "output_shape", s->n_axes, i, DIM_UNKNOWN, &wanted));
    if (a->in == DIM_UNKNOWN || a->kernel == DIM_UNKNOWN) return CLG_OK;
    if (a->in > OP_MAX_SIZE / a->stride || a->kernel < 1 ||
        a->kernel - 1 > OP_MAX_SIZE / a->dilation)
        return error_set(CLG_ERROR_SHAPE, "%s: spatial axis %d is too long or its window empty",
                         node_text(n, shown), i);
    const int64_t whole =
        a->in > 0 ? a->stride * (a->in - 1) + extra + (a->kernel - 1) * a->dilation + 1 : 0;
    if (wanted == DIM_UNKNOWN && same) wanted = a->in * a->stride;
    if (wanted == DIM_UNKNOWN) {
        a->out = whole - a->pad_begin - a->pad_end;
    } else {
        const int64_t total = whole > wanted ? whole - wanted : 0;
        a->pad_begin = strcmp(mode, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        a->pad_end = total - a->pad_begin;
        a->out = wanted;
    }
    if (a->out < 0)
        return error_set(CLG_ERROR_SHAPE, "%s: spatial axis %d is all padding", node_text(n, shown),
                         i);
    return CLG_OK;
}

clg_status conv_transpose_read(const node *n, const shape *x, const shape *w, window_desc *out)
{
    char shown[NODE_TEXT_BYTES];
    *out = (window_desc){.n_axes = x->rank - 2};
    if (x->rank < 3 || x->rank != w->rank || out->n_axes > WINDOW_MAX_AXES)
        return error_set(
            CLG_ERROR_SHAPE,
            "%s: the input has rank %d and the weight %d; they must be equal and 3 to %d",
            node_text(n, shown), x->rank, w->rank, WINDOW_MAX_AXES + 2);
    size_t n_pads;
    const int64_t *pads = node_ints(n, "pads", &n_pads);
    const bool padded = n_pads > 0 && strcmp(node_string(n, "auto_pad", "NOTSET"), "NOTSET") == 0;
    if (padded && n_pads != 2 * (size_t)out->n_axes)
        return error_set(CLG_ERROR_SHAPE, "%s: pads has %zu values for %d axes",
                         node_text(n, shown), n_pads, out->n_axes);
    for (int i = 0; i < out->n_axes; i++) {
        window_axis *a = &out->axes[i];
        int64_t requested;
        *a = (window_axis){.in = x->dims[2 + i], .out = DIM_UNKNOWN, .kernel = w->dims[2 + i]};
        CLG_TRY(axis_value(n, "kernel_shape", out->n_axes, i, a->kernel, &requested));
        CLG_TRY(axis_value(n, "strides", out->n_axes, i, 1, &a->stride));
        CLG_TRY(axis_value(n, "dilations", out->n_axes, i, 1, &a->dilation));
        if (dims_differ(requested, a->kernel))
            return error_set(CLG_ERROR_SHAPE,
                             "%s: kernel_shape says %" PRId64 " where the weight has %" PRId64,
                             node_text(n, shown), requested, a->kernel);
        if (padded) a->pad_begin = pads[i];
        if (padded) a->pad_end = pads[out->n_axes + i];
        CLG_TRY(place_axis(n, out, i));
    }
    return CLG_OK;
}

clg_status conv_transpose_shape(const op_context *c, const shape *x, const shape *w, shape *out)
{
    const int64_t groups = node_int(c->node, "group", 1);
    window_desc s;
    CLG_TRY(conv_transpose_read(c->node, x, w, &s));
    const int64_t outputs = w->dims[1] == DIM_UNKNOWN ? DIM_UNKNOWN : w->dims[1] * groups;
    if (dims_differ(x->dims[1], w->dims[0]) ||
        (w->dims[0] != DIM_UNKNOWN && w->dims[0] % groups != 0))
        return op_error(c, CLG_ERROR_SHAPE,
                        "%" PRId64 " channels meet a weight for %" PRId64 " in %" PRId64 " groups",
                        x->dims[1], w->dims[0], groups);
    window_shape(&s, x->dims[0], outputs, out);
    return CLG_OK;
}

static clg_status transpose_infer(op_context *c)
{
    shape y = {0};
    CLG_TRY(conv_transpose_shape(c, &op_input(c, 0)->dims, &op_input(c, 1)->dims, &y));
    CLG_TRY(window_check_bias(c, 2, y.dims[1]));
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* ---- summing windows ------------------------------------------------------------------------- */

/* What a step of col2im.cl sums. */
typedef struct summed {
    int64_t planes, channels;
    operand cols, y; /* cols: the windows; those of a direct step are input 0 */
    uint32_t bias;   /* index of the input; 0: none */
    /* Not 0: the step multiplies input 1 itself, with so many channels of a group in x and y. */
    int64_t per_group, outputs;
} summed;

static void add_up(lower_context *c, candidate *impl, const window_axis *a, const summed *t)
{
    const clg_dtype dtype = c->outputs[0].dtype;
    const bool simd = lower_is_simd(c), direct = t->per_group > 0;
    const int64_t planes = t->planes;
    step_builder *b = &c->build;
    step *s =
        step_kernel(b, impl, "col2im", "col2im",
                    prelude_text(b, "P_DIRECT=%d P_BIAS=%d P_FORM=%d P_LINE=%d P_T=%d P_VEC=1",
                                 direct, t->bias != 0, !simd, simd ? LINE : 1, (int)dtype));
    STEP_INTS(b, s, planes, t->channels, t->per_group, t->outputs);
    window_args(b, s, a);
    STEP_BUFFERS(b, s, {t->cols, dtype}, {direct ? operand_input(1) : t->cols, dtype},
                 {t->bias ? operand_input(t->bias) : t->cols, dtype}, {t->y, dtype});
    s->flops = (double)planes * (double)window_count_taps(a) * (double)window_count_in(a);
    s->bytes = s->flops * (double)dtype_size(dtype);
    if (direct) s->flops *= 2.0 * (double)t->per_group;
    if (simd) {
        const int64_t lines = planes * a[0].out * a[1].out;
        const int64_t groups = GROUPS_PER_UNIT * work_units(c);
        work_check_work(c, s, lines);
        work_range_2d(c, s, work_ceil_div(a[2].out, LINE), 1, work_min(lines, groups), 1);
    } else {
        work_range_rows(c, s, window_count_out(a), planes);
    }
}

/* The product of a transposed convolution, of which each candidate has the result in its first
 * scratch memory. */
static clg_status windows_job(const lower_context *c, const window_axis *a, gemm_job *out)
{
    const lower_operand *x = lower_input(c, 0), *w = lower_input(c, 1);
    const int64_t groups = node_int(c->node, "group", 1), images = x->dims.dims[0],
                  pixels = window_count_in(a), per_group = w->dims.dims[0] / groups;
    gemm_job j = {.dtype = x->dtype,
                  .m = w->dims.dims[1] * window_count_taps(a),
                  .n = pixels,
                  .k = per_group,
                  .batch = images * groups,
                  .batch_in = groups,
                  .epilogue = {.alpha = 1, .beta = 1}};
    const operand cols = {OPERAND_SCRATCH, 0, 0};
    j.a = (gemm_matrix){operand_input(1), 1, j.m, 0, groups > 1 ? per_group * j.m : 0, w->constant};
    j.b = (gemm_matrix){operand_input(0),
                        pixels,
                        1,
                        groups * per_group * pixels,
                        groups > 1 ? per_group * pixels : 0,
                        false};
    if (j.n > 0 && j.m > INT64_MAX / 64 / j.n / groups)
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    j.c =
        (gemm_matrix){cols, pixels, 1, groups * j.m * pixels, groups > 1 ? j.m * pixels : 0, false};
    if (groups == 1) { /* use one batch dimension, since CLBlast supports only one */
        j.batch_in = images > 0 ? images : 1;
        j.b.b1 = j.b.b0;
        j.c.b1 = j.c.b0;
    }
    *out = j;
    return CLG_OK;
}

/* Adds candidates that compute the windows of all images, and then sum them. */
static clg_status add_at_once(lower_context *c, const window_axis *a, const gemm_job *j,
                              const summed *t)
{
    size_t size_bytes;
    if (!dtype_bytes(j->dtype, j->m * j->n * (j->batch > 0 ? j->batch : 1), &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    CLG_TRY(gemm_lower(c, j, 1));
    for (candidate *impl = c->build.candidates; impl; impl = impl->next) {
        const operand made = step_scratch(&c->build, impl, size_bytes);
        if (made.index != t->cols.index && c->build.status == CLG_OK)
            return lower_error(c, CLG_ERROR_INTERNAL, "the matrix product uses scratch memory");
        add_up(c, impl, a, t);
    }
    return CLG_OK;
}

/* Adds a candidate that does so for `together` images at a time. */
static clg_status add_in_parts(lower_context *c, const window_axis *a, const gemm_job *whole,
                               const summed *all, bool blas, int64_t together)
{
    const shape *x = &lower_input(c, 0)->dims, *y = &c->outputs[0].dims;
    const int64_t images = x->dims[0], groups = whole->batch / images;
    candidate *impl = step_candidate(&c->build, blas ? "blas_parts" : "gemm_parts");
    size_t size_bytes;
    if (!dtype_bytes(whole->dtype, whole->m * whole->n * groups * together, &size_bytes))
        return lower_error(c, CLG_ERROR_SHAPE, "its windows are too large to address");
    (void)step_scratch(&c->build, impl, size_bytes);
    for (int64_t first = 0; first < images; first += together) {
        const int64_t n = work_min(together, images - first);
        gemm_job j = *whole;
        summed t = *all;
        j.batch = n * groups;
        if (groups == 1) j.batch_in = n;
        j.b.at.offset_elems = first * x->dims[1] * window_count_in(a);
        t.planes = n * t.channels;
        t.y.offset_elems = first * y->dims[1] * window_count_out(a);
        CLG_TRY(gemm_append(c, impl, &j, blas));
        add_up(c, impl, a, &t);
    }
    return CLG_OK;
}

clg_status conv_transpose_add(lower_context *c, const window_axis *a, uint32_t bias,
                              int64_t together)
{
    const shape *x = &lower_input(c, 0)->dims, *w = &lower_input(c, 1)->dims;
    const int64_t groups = node_int(c->node, "group", 1), images = x->dims[0],
                  per_group = w->dims[0] / groups, outputs = w->dims[1];
    summed t = {.planes = images * groups * outputs,
                .channels = groups * outputs,
                .cols = {OPERAND_SCRATCH, 0, 0},
                .y = operand_output(0),
                .bias = bias};
    gemm_job j = {0};
    CLG_TRY(windows_job(c, a, &j));
    if (groups > 1 && per_group > 0 && per_group <= MAX_DIRECT && outputs <= MAX_DIRECT) {
        summed direct = t;
        direct.cols = operand_input(0);
        direct.per_group = per_group;
        direct.outputs = outputs;
        add_up(c, step_candidate(&c->build, "col2im_direct"), a, &direct);
        return CLG_OK;
    }
    if (together == 0 || together >= images || j.m * j.n == 0) return add_at_once(c, a, &j, &t);
    CLG_TRY(add_in_parts(c, a, &j, &t, false, together));
    if (gemm_fits_blas(&j)) CLG_TRY(add_in_parts(c, a, &j, &t, true, together));
    return CLG_OK;
}

static clg_status transpose_lower(lower_context *c)
{
    window_desc s;
    window_axis a[WINDOW_MAX_AXES];
    CLG_TRY(work_check_dtype(c, lower_input(c, 0)->dtype));
    CLG_TRY(conv_transpose_read(c->node, &lower_input(c, 0)->dims, &lower_input(c, 1)->dims, &s));
    window_fill(&s, a);
    return conv_transpose_add(c, a, lower_has_input(c, 2) ? 2 : 0, 0);
}

/* ---- Col2Im ---------------------------------------------------------------------------------- */

/* Reads the shapes of image and block; returns false while they are unknown, or after an error. */
static bool col2im_read(op_context *c, window_desc *s, clg_status *status)
{
    int64_t image[OP_MAX_INTS], block[OP_MAX_INTS];
    size_t n_image, n_block, n_pads;
    const bool known = op_need_ints(c, 1, image, &n_image, status) && *status == CLG_OK;
    if (!op_need_ints(c, 2, block, &n_block, status) || !known || *status != CLG_OK) return false;
    if (n_image != n_block || n_image < 1 || n_image > WINDOW_MAX_AXES) {
        *status =
            op_error(c, CLG_ERROR_SHAPE,
                     "image_shape has %zu and block_shape %zu numbers; both must have 1 to %d",
                     n_image, n_block, WINDOW_MAX_AXES);
        return false;
    }
    *s = (window_desc){.n_axes = (int)n_image};
    const int64_t *pads = node_ints(c->node, "pads", &n_pads);
    if (n_pads != 0 && n_pads != 2 * n_image) {
        *status = op_error(c, CLG_ERROR_SHAPE, "pads has %zu values for %zu axes", n_pads, n_image);
        return false;
    }
    for (int i = 0; i < s->n_axes; i++) {
        window_axis *a = &s->axes[i];
        *a = (window_axis){.out = image[i],
                           .kernel = block[i],
                           .pad_begin = n_pads ? pads[i] : 0,
                           .pad_end = n_pads ? pads[s->n_axes + i] : 0};
        *status = axis_value(c->node, "strides", s->n_axes, i, 1, &a->stride);
        if (*status == CLG_OK)
            *status = axis_value(c->node, "dilations", s->n_axes, i, 1, &a->dilation);
        if (*status != CLG_OK) return false;
        const bool sane = a->out >= 0 && a->out <= OP_MAX_SIZE && a->kernel >= 1 &&
                          a->kernel - 1 <= OP_MAX_SIZE / a->dilation;
        const int64_t room =
            sane ? a->out + a->pad_begin + a->pad_end - (a->kernel - 1) * a->dilation - 1 : -1;
        if (room < 0) {
            *status =
                op_error(c, CLG_ERROR_SHAPE,
                         "a block of %" PRId64 " does not fit axis %d of the image", a->kernel, i);
            return false;
        }
        a->in = room / a->stride + 1;
    }
    return true;
}

static clg_status col2im_infer(op_context *c)
{
    const shape *x = &op_input(c, 0)->dims;
    clg_status status = CLG_OK;
    window_desc s;
    int64_t windows = 1, taps = 1;
    if (x->rank != 3)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and must have 3", x->rank);
    if (!col2im_read(c, &s, &status)) return status;
    for (int i = 0; i < s.n_axes; i++) {
        windows *= s.axes[i].in;
        taps *= s.axes[i].kernel;
    }
    if (dims_differ(x->dims[2], windows) || (x->dims[1] != DIM_UNKNOWN && x->dims[1] % taps != 0))
        return op_error(c, CLG_ERROR_SHAPE,
                        "%" PRId64 " columns of %" PRId64 " do not hold %" PRId64
                        " blocks of %" PRId64,
                        x->dims[2], x->dims[1], windows, taps);
    shape y = {.rank = 2 + s.n_axes,
               .dims = {x->dims[0], x->dims[1] == DIM_UNKNOWN ? DIM_UNKNOWN : x->dims[1] / taps}};
    for (int i = 0; i < s.n_axes; i++) y.dims[2 + i] = s.axes[i].out;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status col2im_lower(lower_context *c)
{
    /* The data of the shape inputs, which inference needed, are known when lowering too. */
    const value_fact facts[3] = {
        {.dtype = c->inputs[0].dtype, .dims = c->inputs[0].dims},
        {.dtype = c->inputs[1].dtype, .dims = c->inputs[1].dims, .known = c->inputs[1].known},
        {.dtype = c->inputs[2].dtype, .dims = c->inputs[2].dims, .known = c->inputs[2].known}};
    op_context look = {.node = c->node, .row = c->row, .inputs = facts, .n_inputs = 3};
    clg_status status = CLG_OK;
    window_desc s;
    window_axis a[WINDOW_MAX_AXES];
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    if (!col2im_read(&look, &s, &status))
        return status != CLG_OK ? status
                                : lower_error(c, CLG_ERROR_INTERNAL, "its shapes are not known");
    window_fill(&s, a);
    const shape *y = &c->outputs[0].dims;
    const summed t = {.planes = y->dims[0] * y->dims[1],
                      .channels = y->dims[1],
                      .cols = operand_input(0),
                      .y = operand_output(0)};
    add_up(c, step_candidate(&c->build, "col2im"), a, &t);
    return CLG_OK;
}

/* ---- entries of the operator table ----------------------------------------------------------- */

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_FLOAT64)}, {0}};
static const op_types col2im_types[] = {
    {'T', DTYPES_NUMERIC & ~DTYPE_BIT(CLG_BFLOAT16)}, {'I', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_attribute transpose_attributes[] = {CONV_TRANSPOSE_ATTRIBUTES{0}};
static const op_attribute col2im_attributes[] = {{"dilations", ATTRIBUTE_INTS, false, OP_SIZE},
                                                 {"pads", ATTRIBUTE_INTS, false, OP_PADDING},
                                                 {"strides", ATTRIBUTE_INTS, false, OP_SIZE},
                                                 {0}};

const op_row op_rows_convtranspose[] = {
    {.name = "ConvTranspose",
     .grad = GRAD_BY(grad_pass_conv_transpose),
     .batch = BATCH_FIRST,
     .since = 1,
     OP_INPUTS(2, 3, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = transpose_attributes,
     .check = window_check,
     .infer = transpose_infer,
     .lower = transpose_lower},
    {.name = "Col2Im",
     .grad = GRAD_BY(grad_pass_col2im),
     .batch = BATCH_FIRST,
     .since = 18,
     OP_INPUTS(3, 3, "TII"),
     OP_OUTPUTS(1, 1, "T"),
     .types = col2im_types,
     .attributes = col2im_attributes,
     .check = window_check,
     .infer = col2im_infer,
     .lower = col2im_lower},
};
const size_t n_op_rows_convtranspose = sizeof op_rows_convtranspose / sizeof *op_rows_convtranspose;
