/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the models that code blocks of the documents need into a folder:
 *
 *     make_models FOLDER
 *
 *     linear.onnx    x [rows,3] -> y [rows,2]
 *     scores.onnx    x [rows,3] -> probabilities [rows,4], label [rows]
 *     loss.onnx      x [rows,3], target [rows,2], layer1.weight -> loss []
 *     state.onnx     x [1,3], past [1,3] -> y [1,3], present [1,3]
 *     images.onnx    image [rows,1,4,4] -> probabilities [rows,16]
 *     case/          of linear.onnx, an input and its output for cltool verify; the folder and
 *                    its test_data_set_0 must be there
 *     resnet50.onnx, clip.onnx, model.onnx
 *                    image [1,3,S,S], S = 224, 224, 384 -> [1,1000], [1,512], [1,1000]
 *     yolox_nano.onnx, version-RFB-320.onnx, deeplab.onnx: the inputs and outputs of these models
 *     language/model.onnx    input_ids [batch,tokens] -> logits [batch,tokens,8], for files.py; the
 *                    folder must be there
 *     columns.onnx   as images.onnx, with a Softmax over the rows, the node softmax_3
 */
#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>

static clg_builder *b;

static void need(clg_status status)
{
    if (status == CLG_OK) return;
    fprintf(stderr, "make_models: %s\n", clg_last_error());
    exit(1);
}

static void start(void) { need(clg_builder_create(13, &b)); }

static void input(const char *name, size_t rank, const int64_t *dims)
{
    const char *names[4] = {"rows", "", "", ""};
    need(clg_builder_input(b, name, CLG_FLOAT32, rank, dims, dims[0] < 0 ? names : NULL));
}

static void weights(const char *name, int64_t rows, int64_t columns)
{
    float values[64];
    for (int i = 0; i < rows * columns; i++) values[i] = 0.1f * (float)(i % 7) - 0.2f;
    need(clg_builder_constant(b, name, CLG_FLOAT32, 2, (int64_t[]){rows, columns}, values,
                              (size_t)(rows * columns) * sizeof(float)));
}

static void node(const char *op, const char *name, const char *x, const char *y, const char *out)
{
    const char *inputs[2] = {x, y};
    need(clg_builder_node(b, NULL, op, name, y ? 2 : 1, inputs, 1, &out));
}

static void finish(const char *folder, const char *file)
{
    char path[4096];
    clg_model *model;
    need(clg_builder_build(b, &model));
    snprintf(path, sizeof path, "%s/%s", folder, file);
    need(clg_model_save(model, path, NULL));
    clg_model_free(model);
    clg_builder_free(b);
}

static void make_vectors(const char *folder)
{
    const int64_t rows3[] = {-1, 3}, rows2[] = {-1, 2}, one3[] = {1, 3};
    start();
    input("x", 2, rows3);
    weights("w", 3, 2);
    node("MatMul", NULL, "x", "w", "y");
    need(clg_builder_output(b, "y"));
    finish(folder, "linear.onnx");

    start();
    input("x", 2, rows3);
    weights("w", 3, 4);
    node("MatMul", NULL, "x", "w", "scores");
    node("Softmax", NULL, "scores", NULL, "probabilities");
    node("ArgMax", NULL, "scores", NULL, "label");
    need(clg_builder_attribute_int(b, "axis", 1));
    need(clg_builder_attribute_int(b, "keepdims", 0));
    need(clg_builder_output(b, "probabilities"));
    need(clg_builder_output(b, "label"));
    finish(folder, "scores.onnx");

    start();
    input("x", 2, rows3);
    input("target", 2, rows2);
    weights("layer1.weight", 3, 2);
    node("MatMul", NULL, "x", "layer1.weight", "y");
    node("Sub", NULL, "y", "target", "difference");
    node("Mul", NULL, "difference", "difference", "squares");
    node("ReduceMean", NULL, "squares", NULL, "loss");
    need(clg_builder_attribute_int(b, "keepdims", 0));
    need(clg_builder_output(b, "loss"));
    finish(folder, "loss.onnx");

    start();
    input("x", 2, one3);
    input("past", 2, one3);
    node("Add", NULL, "x", "past", "present");
    node("Relu", NULL, "present", NULL, "y");
    need(clg_builder_output(b, "y"));
    need(clg_builder_output(b, "present"));
    finish(folder, "state.onnx");
}

static void make_images(const char *folder, const char *file, int64_t axis)
{
    start();
    input("image", 4, (int64_t[]){-1, 1, 4, 4});
    node("Relu", "relu_1", "image", NULL, "positive");
    node("Flatten", "flatten_2", "positive", NULL, "flat");
    node("Softmax", "softmax_3", "flat", NULL, "probabilities");
    need(clg_builder_attribute_int(b, "axis", axis));
    need(clg_builder_output(b, "probabilities"));
    finish(folder, file);
}

static void constant(const char *name, size_t n, const int64_t *numbers)
{
    need(clg_builder_constant(b, name, CLG_INT64, 1, (int64_t[]){(int64_t)n}, numbers,
                              n * sizeof *numbers));
}

/* Adds an output of these dimensions, each element of which is the mean of the input "image". */
static void means(const char *name, size_t rank, const int64_t *dims)
{
    static const int64_t one = 1;
    char shape[64], flat[64];
    snprintf(shape, sizeof shape, "%s_shape", name);
    snprintf(flat, sizeof flat, "%s_flat", name);
    constant(shape, rank, dims);
    node("ReduceMean", NULL, "image", NULL, name[0] == 'b' ? "mean_b" : "mean");
    need(clg_builder_attribute_int(b, "keepdims", 1));
    constant(name[0] == 'b' ? "one_b" : "one", 1, &one);
    node("Reshape", NULL, name[0] == 'b' ? "mean_b" : "mean", name[0] == 'b' ? "one_b" : "one",
         flat);
    node("Expand", NULL, flat, shape, name);
    need(clg_builder_output(b, name));
}

static void make_vision(const char *folder)
{
    static const struct {
        const char *file;
        int64_t height, width;
        const char *outputs[2];
        size_t rank;
        int64_t dims[2][4];
    } models[] = {
        {"resnet50.onnx", 224, 224, {"scores"}, 2, {{1, 1000}}},
        {"clip.onnx", 224, 224, {"embedding"}, 2, {{1, 512}}},
        {"model.onnx", 384, 384, {"scores"}, 2, {{1, 1000}}},
        {"yolox_nano.onnx", 416, 416, {"output"}, 3, {{1, 3549, 85}}},
        {"version-RFB-320.onnx", 240, 320, {"scores", "boxes"}, 3, {{1, 4420, 2}, {1, 4420, 4}}},
        {"deeplab.onnx", 520, 589, {"out"}, 4, {{1, 21, 520, 589}}},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        start();
        input("image", 4, (int64_t[]){1, 3, models[i].height, models[i].width});
        for (size_t k = 0; k < 2 && models[i].outputs[k]; k++)
            means(models[i].outputs[k], models[i].rank, models[i].dims[k]);
        finish(folder, models[i].file);
    }
}

/* Saves rows of ones as the input, and the sums of the weights' columns as the output. */
static void make_case(const char *folder)
{
    static const char *const files[] = {"input_0.pb", "output_0.pb"};
    const float ones[3] = {1, 1, 1}, sums[2] = {0, 0.3f};
    for (int i = 0; i < 2; i++) {
        char path[4096];
        clg_value *v;
        need(clg_value_create(CLG_FLOAT32, 2, (int64_t[]){1, 3 - i}, &v));
        need(clg_value_write(v, i ? sums : ones, (size_t)(3 - i) * sizeof(float)));
        snprintf(path, sizeof path, "%s/case/test_data_set_0/%s", folder, files[i]);
        need(clg_value_save(v, path));
        clg_value_free(v);
    }
}

/* The most likely token after each is the next one, of eight. */
static void make_language(const char *folder)
{
    float embed[64] = {0}, head[64] = {0};
    const int64_t square[] = {8, 8}, any[] = {-1, -1};
    const char *names[] = {"batch", "tokens"};
    for (int i = 0; i < 8; i++) {
        embed[9 * i] = 1;
        head[8 * i + (i + 1) % 8] = 5;
        head[8 * i + (i + 2) % 8] = 2;
    }
    start();
    need(clg_builder_input(b, "input_ids", CLG_INT64, 2, any, names));
    need(clg_builder_constant(b, "embed", CLG_FLOAT32, 2, square, embed, sizeof embed));
    need(clg_builder_constant(b, "head", CLG_FLOAT32, 2, square, head, sizeof head));
    node("Gather", NULL, "embed", "input_ids", "x");
    node("MatMul", NULL, "x", "head", "logits");
    need(clg_builder_output(b, "logits"));
    finish(folder, "language/model.onnx");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_models FOLDER\n");
        return 2;
    }
    make_vectors(argv[1]);
    make_case(argv[1]);
    make_vision(argv[1]);
    make_language(argv[1]);
    make_images(argv[1], "images.onnx", 1);
    make_images(argv[1], "columns.onnx", 0);
    return 0;
}
