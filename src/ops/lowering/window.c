/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks the window attributes of convolutions and pools, and infers their output shapes.
 * See window.h.
 */
#include "ops/lowering/window.h"

#include <inttypes.h>
#include <stdarg.h>

CLG_PRINTF(3, 4)
static clg_status fault(const node *n, clg_status status, const char *format, ...)
{
    char shown[NODE_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)error_set_v(status, format, args);
    va_end(args);
    return error_prefix(status, "%s", node_text(n, shown));
}

typedef enum auto_pad { PAD_NOTSET, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID } auto_pad;

const char *const window_auto_pads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};

static auto_pad read_auto_pad(const node *n)
{
    return (auto_pad)op_word(n, "auto_pad", "NOTSET", window_auto_pads);
}

clg_status window_check(const node *n)
{
    size_t n_axes;
    (void)node_ints(n, "kernel_shape", &n_axes);
    if (n_axes > WINDOW_MAX_AXES)
        return fault(n, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "a window over %zu axes is not supported; at most %d are", n_axes,
                     WINDOW_MAX_AXES);
    return CLG_OK;
}

/* Reads an attribute of n_expected integers, or `fallback` for each when it is absent. */
static clg_status read_axes(const node *n, const char *name, int n_expected, int64_t fallback,
                            int64_t *out)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    if (values && count > 0 && count != (size_t)n_expected)
        return fault(n, CLG_ERROR_SHAPE, "%s has %zu values where the input requires %d", name,
                     count, n_expected);
    for (int i = 0; i < n_expected; i++) out[i] = values && count > 0 ? values[i] : fallback;
    return CLG_OK;
}

static int64_t extent(const window_axis *a) { return (a->kernel - 1) * a->dilation + 1; }

/* Computes padding and number of outputs along an axis whose size is known. */
static clg_status place(const node *n, window_axis *a, auto_pad mode, int axis)
{
    if (mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER) {
        a->out = (a->in + a->stride - 1) / a->stride;
        int64_t total = (a->out - 1) * a->stride + extent(a) - a->in;
        total = total > 0 ? total : 0;
        a->pad_begin = mode == PAD_SAME_UPPER ? total / 2 : total - total / 2;
        a->pad_end = total - a->pad_begin;
        return CLG_OK;
    }
    int64_t room = a->in + a->pad_begin + a->pad_end - extent(a);
    if (room < 0)
        return fault(n, CLG_ERROR_SHAPE,
                     "a window of %" PRId64 " does not fit spatial axis %d of size %" PRId64
                     " with padding %" PRId64,
                     extent(a), axis, a->in, a->pad_begin + a->pad_end);
    a->out = room / a->stride + 1;
    if (node_int(n, "ceil_mode", 0) != 0 && mode != PAD_VALID) {
        a->out = (room + a->stride - 1) / a->stride + 1;
        /* Ignore a window that would start in the padding at the end. */
        if ((a->out - 1) * a->stride >= a->in + a->pad_begin) a->out--;
    }
    return CLG_OK;
}

clg_status window_read(const node *n, const shape *in, const shape *kernel, window_desc *out_window)
{
    *out_window = (window_desc){0};
    int axes = in->rank - 2;
    if (axes < 1)
        return fault(n, CLG_ERROR_SHAPE,
                     "the input has rank %d and needs batch, channels and one axis at least",
                     in->rank);
    if (axes > WINDOW_MAX_AXES)
        return fault(n, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                     "a window over %d axes is not supported; at most %d are", axes,
                     WINDOW_MAX_AXES);
    int64_t sizes[WINDOW_MAX_AXES], strides[WINDOW_MAX_AXES], dilations[WINDOW_MAX_AXES];
    int64_t pads[2 * WINDOW_MAX_AXES];
    CLG_TRY(read_axes(n, "kernel_shape", axes, DIM_UNKNOWN, sizes));
    CLG_TRY(read_axes(n, "strides", axes, 1, strides));
    CLG_TRY(read_axes(n, "dilations", axes, 1, dilations));
    CLG_TRY(read_axes(n, "pads", 2 * axes, 0, pads));
    auto_pad mode = read_auto_pad(n);
    out_window->n_axes = axes;
    for (int i = 0; i < axes; i++) {
        window_axis *a = &out_window->axes[i];
        bool padded = mode == PAD_NOTSET;
        *a = (window_axis){in->dims[2 + i],
                           DIM_UNKNOWN,
                           sizes[i],
                           strides[i],
                           dilations[i],
                           padded ? pads[i] : 0,
                           padded ? pads[axes + i] : 0};
        if (kernel && kernel->rank == in->rank) {
            int64_t there = kernel->dims[2 + i];
            if (a->kernel != DIM_UNKNOWN && there != DIM_UNKNOWN && a->kernel != there)
                return fault(n, CLG_ERROR_SHAPE, "kernel_shape says %lld where the weight has %lld",
                             (long long)a->kernel, (long long)there);
            a->kernel = a->kernel == DIM_UNKNOWN ? there : a->kernel;
        }
        if (a->kernel == DIM_UNKNOWN) {
            if (!kernel) return fault(n, CLG_ERROR_INVALID_MODEL, "kernel_shape is missing");
            continue;
        }
        if (a->kernel < 1 || a->in > OP_MAX_SIZE || (a->kernel - 1) > OP_MAX_SIZE / a->dilation)
            return fault(n, CLG_ERROR_SHAPE, "spatial axis %d is too long or its window empty", i);
        if (a->in != DIM_UNKNOWN) CLG_TRY(place(n, a, mode, i));
    }
    return CLG_OK;
}

clg_status window_read_conv(const op_context *c, const shape *x, const shape *w,
                            window_desc *out_window)
{
    const int64_t groups = node_int(c->node, "group", 1);
    if (x->rank != w->rank)
        return op_error(c, CLG_ERROR_SHAPE,
                        "the input has rank %d and the weight %d; they must be equal", x->rank,
                        w->rank);
    CLG_TRY(window_read(c->node, x, w, out_window));
    const int64_t channels = x->dims[1], per_group = w->dims[1], outputs = w->dims[0];
    if (per_group != DIM_UNKNOWN && dims_differ(channels, per_group * groups))
        return op_error(c, CLG_ERROR_SHAPE,
                        "the input has %" PRId64 " channels where %" PRId64 " groups of %" PRId64
                        " are wanted",
                        channels, groups, per_group);
    if (outputs != DIM_UNKNOWN && outputs % groups != 0)
        return op_error(c, CLG_ERROR_SHAPE,
                        "%" PRId64 " output channels are not divisible into %" PRId64 " groups",
                        outputs, groups);
    return CLG_OK;
}

clg_status window_check_bias(const op_context *c, size_t input, int64_t channels)
{
    int64_t n;
    CLG_TRY(shape_n_elements(&op_input(c, input)->dims, &n));
    if (!op_has_input(c, input) || !dims_differ(n, channels)) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE,
                    "the bias has %" PRId64 " elements for %" PRId64 " output channels", n,
                    channels);
}

void window_shape(const window_desc *w, int64_t batch, int64_t channels, shape *out_shape)
{
    *out_shape = (shape){.rank = w->n_axes + 2, .dims = {batch, channels}};
    for (int i = 0; i < w->n_axes; i++) out_shape->dims[2 + i] = w->axes[i].out;
}

shape window_channels_first(const shape *dims)
{
    shape s = *dims;
    for (int i = 2; i < s.rank; i++) s.dims[i] = dims->dims[i - 1];
    if (s.rank > 2) s.dims[1] = dims->dims[s.rank - 1];
    return s;
}

shape window_channels_last(const shape *dims)
{
    shape s = *dims;
    for (int i = 2; i < s.rank; i++) s.dims[i - 1] = dims->dims[i];
    if (s.rank > 2) s.dims[s.rank - 1] = dims->dims[1];
    return s;
}

void window_fill(const window_desc *w, window_axis out_axes[WINDOW_MAX_AXES])
{
    int missing = WINDOW_MAX_AXES - w->n_axes;
    for (int i = 0; i < missing; i++) out_axes[i] = (window_axis){1, 1, 1, 1, 1, 0, 0};
    for (int i = 0; i < w->n_axes; i++) out_axes[missing + i] = w->axes[i];
}

int64_t window_seen(const window_axis *a, int64_t outputs)
{
    return (outputs - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
}

int64_t window_count_in(const window_axis *axes) { return axes[0].in * axes[1].in * axes[2].in; }

int64_t window_count_out(const window_axis *axes)
{
    return axes[0].out * axes[1].out * axes[2].out;
}

int64_t window_count_taps(const window_axis *axes)
{
    return axes[0].kernel * axes[1].kernel * axes[2].kernel;
}

void window_args(step_builder *b, step *s, const window_axis *axes)
{
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, axes[i].in);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, axes[i].out);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, axes[i].kernel);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, axes[i].stride);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, axes[i].dilation);
    for (int i = 0; i < WINDOW_MAX_AXES; i++) step_arg_int(b, s, axes[i].pad_begin);
}
