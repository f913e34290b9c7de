/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutional networks as tables of layers: ResNet-50 and MobileNetV2. A row becomes `count`
 * layers or blocks, of which the first has the stride. Convolutions keep height and width up to
 * their stride, and have a BatchNormalization.
 */
#include "suite.h"

#define IMAGE_SIZE 224

typedef enum vision_kind {
    VISION_END,
    VISION_RELU6,     /* no layer: the activations from here on */
    VISION_CONV,      /* a convolution and its activation */
    VISION_MAXPOOL,   /* of kernel x kernel pixels */
    VISION_RESIDUAL,  /* bottleneck: 1x1 to `inner` channels, 3x3, 1x1 to `channels` */
    VISION_INVERTED,  /* 1x1 to `inner` times the channels, depthwise 3x3, linear 1x1 */
    VISION_CLASSIFIER /* mean of all pixels, then a dense layer */
} vision_kind;

struct vision_layer {
    vision_kind kind;
    int64_t channels, kernel, stride, inner, count;
};

static const struct vision_layer resnet50_layers[] = {
    {VISION_CONV, .channels = 64, .kernel = 7, .stride = 2, .count = 1},
    {VISION_MAXPOOL, .kernel = 3, .stride = 2, .count = 1},
    {VISION_RESIDUAL, .channels = 256, .inner = 64, .stride = 1, .count = 3},
    {VISION_RESIDUAL, .channels = 512, .inner = 128, .stride = 2, .count = 4},
    {VISION_RESIDUAL, .channels = 1024, .inner = 256, .stride = 2, .count = 6},
    {VISION_RESIDUAL, .channels = 2048, .inner = 512, .stride = 2, .count = 3},
    {VISION_CLASSIFIER, .channels = 1000, .count = 1},
    {VISION_END, 0, 0, 0, 0, 0},
};

static const struct vision_layer mobilenetv2_layers[] = {
    {VISION_RELU6, .count = 1},
    {VISION_CONV, .channels = 32, .kernel = 3, .stride = 2, .count = 1},
    {VISION_INVERTED, .channels = 16, .inner = 1, .stride = 1, .count = 1},
    {VISION_INVERTED, .channels = 24, .inner = 6, .stride = 2, .count = 2},
    {VISION_INVERTED, .channels = 32, .inner = 6, .stride = 2, .count = 3},
    {VISION_INVERTED, .channels = 64, .inner = 6, .stride = 2, .count = 4},
    {VISION_INVERTED, .channels = 96, .inner = 6, .stride = 1, .count = 3},
    {VISION_INVERTED, .channels = 160, .inner = 6, .stride = 2, .count = 3},
    {VISION_INVERTED, .channels = 320, .inner = 6, .stride = 1, .count = 1},
    {VISION_CONV, .channels = 1280, .kernel = 1, .stride = 1, .count = 1},
    {VISION_CLASSIFIER, .channels = 1000, .count = 1},
    {VISION_END, 0, 0, 0, 0, 0},
};

/* A feature map [batch, channels, height, width], and how activations are computed. */
typedef struct feature_map {
    net *net;
    const char *value;
    int64_t channels;
    const char *low, *high; /* constants of Clip; NULL: Relu */
} feature_map;

typedef struct conv_shape {
    int64_t channels, kernel, stride, groups;
} conv_shape;

static void activate(feature_map *x, const char *layer)
{
    net *n = x->net;
    const char *inputs[] = {x->value, x->low, x->high};
    x->value = x->low ? net_node(n, "Clip", net_name(n, "%s.relu6", layer), 3, inputs)
                      : net_node(n, "Relu", net_name(n, "%s.relu", layer), 1, inputs);
}

/* Adds a convolution without bias, and its BatchNormalization. */
static void convolve(feature_map *x, const char *layer, conv_shape s)
{
    net *n = x->net;
    const int64_t k = s.kernel, pad = k / 2;
    const int64_t dims[] = {s.channels, x->channels / s.groups, k, k};
    const int64_t n_results = s.channels / s.groups; /* of an input */
    const double n_pixels = (double)(k * k);
    const char *inputs[5] = {x->value};
    inputs[1] = net_weights(n, net_name(n, "%s.weight", layer), 4, dims, (double)dims[1] * n_pixels,
                            (double)n_results * n_pixels);
    x->value = net_node(n, "Conv", layer, 2, inputs);
    net_set_ints(n, "kernel_shape", 2, (int64_t[]){k, k});
    net_set_ints(n, "strides", 2, (int64_t[]){s.stride, s.stride});
    net_set_ints(n, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    net_set_int(n, "group", s.groups);
    const char *norm = net_name(n, "%s.norm", layer);
    inputs[0] = x->value;
    net_norm_parameters(n, norm, s.channels, 4, inputs + 1);
    x->value = net_node(n, "BatchNormalization", norm, 5, inputs);
    x->channels = s.channels;
}

static void add_maxpool(feature_map *x, const char *layer, int64_t kernel, int64_t stride)
{
    const int64_t pad = kernel / 2;
    x->value = net_node(x->net, "MaxPool", layer, 1, &x->value);
    net_set_ints(x->net, "kernel_shape", 2, (int64_t[]){kernel, kernel});
    net_set_ints(x->net, "strides", 2, (int64_t[]){stride, stride});
    net_set_ints(x->net, "pads", 4, (int64_t[]){pad, pad, pad, pad});
}

static void add_sum(feature_map *x, const char *layer, const char *other)
{
    const char *terms[] = {x->value, other};
    x->value = net_node(x->net, "Add", net_name(x->net, "%s.sum", layer), 2, terms);
}

static void add_residual(feature_map *x, const char *layer, int64_t channels, int64_t inner,
                         int64_t stride)
{
    net *n = x->net;
    feature_map shortcut = *x;
    if (x->channels != channels || stride != 1)
        convolve(&shortcut, net_name(n, "%s.shortcut", layer),
                 (conv_shape){channels, 1, stride, 1});
    const conv_shape shapes[] = {{inner, 1, 1, 1}, {inner, 3, stride, 1}, {channels, 1, 1, 1}};
    for (int i = 0; i < 3; i++) {
        const char *conv = net_name(n, "%s.conv%d", layer, i + 1);
        convolve(x, conv, shapes[i]);
        if (i < 2) activate(x, conv);
    }
    add_sum(x, layer, shortcut.value);
    activate(x, layer);
}

static void add_inverted(feature_map *x, const char *layer, int64_t channels, int64_t expansion,
                         int64_t stride)
{
    net *n = x->net;
    const feature_map before = *x;
    const int64_t inner = x->channels * expansion;
    if (expansion != 1) {
        const char *expand = net_name(n, "%s.expand", layer);
        convolve(x, expand, (conv_shape){inner, 1, 1, 1});
        activate(x, expand);
    }
    const char *depthwise = net_name(n, "%s.depthwise", layer);
    convolve(x, depthwise, (conv_shape){inner, 3, stride, inner});
    activate(x, depthwise);
    convolve(x, net_name(n, "%s.project", layer), (conv_shape){channels, 1, 1, 1});
    if (stride == 1 && before.channels == channels) add_sum(x, layer, before.value);
}

static void add_classifier(feature_map *x, int64_t n_classes)
{
    net *n = x->net;
    x->value = net_node(n, "GlobalAveragePool", "pool", 1, &x->value);
    x->value = net_node(n, "Flatten", "flatten", 1, &x->value);
    net_output(n, net_gemm(n, x->value, "classifier", x->channels, n_classes));
}

static void add_layer(feature_map *x, const struct vision_layer *row, int64_t shrink, int i,
                      int64_t index)
{
    net *n = x->net;
    const int64_t channels = row->channels / shrink, stride = index == 0 ? row->stride : 1;
    const char *layer = net_name(n, "stage%d.%lld", i, (long long)index);
    switch (row->kind) {
    case VISION_END: break;
    case VISION_RELU6:
        x->low = net_scalar(n, "zero", 0);
        x->high = net_scalar(n, "six", 6);
        break;
    case VISION_CONV:
        convolve(x, layer, (conv_shape){channels, row->kernel, stride, 1});
        activate(x, layer);
        break;
    case VISION_MAXPOOL: add_maxpool(x, layer, row->kernel, stride); break;
    case VISION_RESIDUAL: add_residual(x, layer, channels, row->inner / shrink, stride); break;
    case VISION_INVERTED: add_inverted(x, layer, channels, row->inner, stride); break;
    case VISION_CLASSIFIER: add_classifier(x, channels); break;
    }
}

static void add_vision(net *n, const void *table, int64_t shrink)
{
    const struct vision_layer *rows = table;
    const int64_t size = IMAGE_SIZE / shrink;
    feature_map x = {.net = n, .channels = 3};
    x.value = net_input(n, "image", CLG_FLOAT32, 3, (int64_t[]){3, size, size});
    for (int i = 0; rows[i].kind != VISION_END; i++) {
        for (int64_t k = 0; k < rows[i].count; k++) add_layer(&x, &rows[i], shrink, i, k);
    }
}

/* He et al., Deep Residual Learning, 2015, table 1, with the stride of a block at its 3x3
 * convolution. */
const suite_model suite_resnet50 = {.name = "resnet50",
                                    .title = "ResNet-50",
                                    .input = "224x224 image",
                                    .n_parameters = 25557032,
                                    .scheme = WEIGHTS_KAIMING,
                                    .add = add_vision,
                                    .table = resnet50_layers};

/* Sandler et al., MobileNetV2, 2018, table 2. */
const suite_model suite_mobilenetv2 = {.name = "mobilenetv2",
                                       .title = "MobileNetV2",
                                       .input = "224x224 image",
                                       .n_parameters = 3504872,
                                       .scheme = WEIGHTS_KAIMING,
                                       .add = add_vision,
                                       .table = mobilenetv2_layers};
