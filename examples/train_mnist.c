/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a network 784 -> 128 -> 10 on MNIST with Adam and cross-entropy, and reports how many
 * images that it has not seen are correctly classified.
 *
 *     train_mnist [FOLDER]
 *
 * FOLDER has the four files of MNIST, not compressed (train-images-idx3-ubyte and so on). Without
 * it, images of the same shape are generated: a pattern for each class, shifted, with noise.
 */
#include <clgraph/clgraph.h>
#include <clgraph/train.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_IN = 784, N_HIDDEN = 128, N_OUT = 10, SIDE = 28, N_BATCH = 100, N_EPOCHS = 8, SEED = 1 };

typedef struct images {
    int n;
    float *pixels;   /* [n,784], 0 to 1 */
    int64_t *labels; /* [n] */
} images;

static int allocate(images *to, int n)
{
    to->n = n;
    to->pixels = malloc((size_t)n * N_IN * sizeof *to->pixels);
    to->labels = malloc((size_t)n * sizeof *to->labels);
    return to->pixels && to->labels ? 0 : -1;
}

static void release(images *set)
{
    free(set->pixels);
    free(set->labels);
}

/* ---- IDX files ------------------------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Opens FOLDER/NAME, and reads its header: 4 bytes of magic, and the sizes; returns the first. */
static FILE *open_idx(const char *folder, const char *name, uint32_t magic, int *out_n)
{
    char path[1024];
    unsigned char header[16];
    const size_t n_header = magic == 0x803 ? 16 : 8;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file && fread(header, 1, n_header, file) == n_header && big_endian(header) == magic &&
        big_endian(header + 4) > 0 && big_endian(header + 4) <= 1000000 &&
        (magic != 0x803 || (big_endian(header + 8) == SIDE && big_endian(header + 12) == SIDE))) {
        *out_n = (int)big_endian(header + 4);
        return file;
    }
    (void)fprintf(stderr, "'%s' is not there, or is no IDX file of MNIST\n", path);
    if (file) (void)fclose(file);
    return NULL;
}

static int read_files(FILE *pixels, FILE *labels, images *out)
{
    unsigned char bytes[N_IN], label;
    for (int i = 0; i < out->n; i++) {
        if (fread(bytes, 1, N_IN, pixels) != N_IN || fread(&label, 1, 1, labels) != 1 ||
            label >= N_OUT)
            return -1;
        for (int k = 0; k < N_IN; k++) out->pixels[i * N_IN + k] = (float)bytes[k] / 255;
        out->labels[i] = label;
    }
    return 0;
}

static int load(const char *folder, const char *image_file, const char *label_file, images *out)
{
    int n_images = 0, n_labels = 0, failed = -1;
    FILE *pixels = open_idx(folder, image_file, 0x803, &n_images);
    FILE *labels = pixels ? open_idx(folder, label_file, 0x801, &n_labels) : NULL;
    if (labels && n_images == n_labels && allocate(out, n_images) == 0)
        failed = read_files(pixels, labels, out);
    if (labels && failed) (void)fprintf(stderr, "the files in '%s' are damaged\n", folder);
    if (pixels) (void)fclose(pixels);
    if (labels) (void)fclose(labels);
    return failed;
}

/* ---- generated images ------------------------------------------------------------------------ */

/* Returns a number of 0 to 1 that follows from the state. */
static float next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-24f;
}

/* Waves of a direction and length for each class, shifted by up to 3 pixels. */
static int generate(int n, uint32_t state, images *out)
{
    if (allocate(out, n) != 0) return -1;
    for (int i = 0; i < n; i++) {
        const int label = (int)(next(&state) * N_OUT);
        const float angle = 0.314f * (float)label, length = 0.5f + 0.05f * (float)label;
        const float dx = 6 * next(&state) - 3, dy = 6 * next(&state) - 3;
        for (int k = 0; k < N_IN; k++) {
            const float x = (float)(k % SIDE) + dx, y = (float)(k / SIDE) + dy; /* NOLINT */
            const float wave = sinf(length * (x * cosf(angle) + y * sinf(angle)));
            out->pixels[i * N_IN + k] = 0.5f + 0.3f * wave + 0.2f * (next(&state) - 0.5f);
        }
        out->labels[i] = label;
    }
    return 0;
}

/* ---- the network ----------------------------------------------------------------------------- */

/* Adds weights, uniform in +-1/sqrt(n_from) as PyTorch's, and a Gemm. */
static clg_status add_layer(clg_builder *b, const char *const names[4], int64_t n_from,
                            int64_t n_to, uint32_t seed)
{
    const size_t n = (size_t)(n_from * n_to);
    float *weights = malloc(n * sizeof *weights);
    if (!weights) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const float bound = 1 / sqrtf((float)n_from);
    for (size_t i = 0; i < n; i++) weights[i] = bound * (2 * next(&seed) - 1);
    clg_status s = clg_builder_constant(
        b, names[1], CLG_FLOAT32, 2, (const int64_t[]){n_from, n_to}, weights, n * sizeof *weights);
    if (s == CLG_OK)
        s = clg_builder_constant(b, names[2], CLG_FLOAT32, 1, &n_to, weights,
                                 (size_t)n_to * sizeof *weights);
    if (s == CLG_OK) s = clg_builder_node(b, NULL, "Gemm", names[3], 3, names, 1, &names[3]);
    free(weights);
    return s;
}

static clg_status build(clg_model **out_model)
{
    clg_builder *b;
    clg_status s = clg_builder_create(17, &b);
    if (s != CLG_OK) return s;
    s = clg_builder_input(b, "image", CLG_FLOAT32, 2, (const int64_t[]){-1, N_IN}, NULL);
    if (s == CLG_OK)
        s = add_layer(b, (const char *const[]){"image", "w1", "b1", "sums"}, N_IN, N_HIDDEN, 1);
    if (s == CLG_OK)
        s = clg_builder_node(b, NULL, "Relu", "relu", 1, (const char *[]){"sums"}, 1,
                             (const char *[]){"hidden"});
    if (s == CLG_OK)
        s = add_layer(b, (const char *const[]){"hidden", "w2", "b2", "logits"}, N_HIDDEN, N_OUT, 2);
    if (s == CLG_OK) s = clg_builder_output(b, "logits");
    if (s == CLG_OK) s = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return s;
}

/* ---- training -------------------------------------------------------------------------------- */

static clg_status create(clg_context *context, clg_trainer **out_trainer)
{
    clg_model *model;
    clg_loss_options loss = CLG_LOSS_OPTIONS_INIT;
    clg_optimizer_options optimizer = CLG_OPTIMIZER_OPTIONS_INIT;
    clg_train_options options = CLG_TRAIN_OPTIONS_INIT;
    clg_status s = build(&model);
    if (s != CLG_OK) return s;
    loss.kind = CLG_LOSS_CROSS_ENTROPY;
    optimizer.kind = CLG_OPTIMIZER_ADAM;
    options.loss = &loss;
    options.optimizer = &optimizer;
    s = clg_trainer_create(context, model, &options, out_trainer);
    clg_model_free(model);
    return s;
}

/* Sets a batch of rows in the order of an epoch; the values are read by the next step. */
static void gather(const images *set, uint64_t epoch, int first, clg_value *x, clg_value *t)
{
    float *pixels = clg_value_data(x);
    int64_t *labels = clg_value_data(t);
    for (int i = 0; i < N_BATCH; i++) {
        const uint64_t row =
            clg_train_row(SEED, epoch, (uint64_t)set->n, (uint64_t)first + (uint64_t)i);
        for (int k = 0; k < N_IN; k++) pixels[i * N_IN + k] = set->pixels[row * N_IN + (size_t)k];
        labels[i] = set->labels[row];
    }
}

static clg_status train_epoch(clg_trainer *trainer, const images *set, uint64_t epoch)
{
    double sum = 0;
    int n = 0;
    clg_status s = CLG_OK;
    for (int first = 0; first + N_BATCH <= set->n && s == CLG_OK; first += N_BATCH, n++) {
        clg_train_stats stats = CLG_TRAIN_STATS_INIT;
        clg_value *x = NULL, *t = NULL;
        s = clg_value_create(CLG_FLOAT32, 2, (const int64_t[]){N_BATCH, N_IN}, &x);
        if (s == CLG_OK) s = clg_value_create(CLG_INT64, 1, (const int64_t[]){N_BATCH}, &t);
        if (s == CLG_OK) gather(set, epoch, first, x, t);
        if (s == CLG_OK) s = clg_trainer_set_input(trainer, "image", x);
        if (s == CLG_OK) s = clg_trainer_set_input(trainer, "target", t);
        if (s == CLG_OK) s = clg_trainer_step(trainer, &stats);
        clg_value_free(x);
        clg_value_free(t);
        sum += stats.loss;
    }
    if (s == CLG_OK) (void)printf("epoch %d  loss %.4f\n", (int)epoch + 1, sum / n);
    return s;
}

static int largest(const float *logits)
{
    int at = 0;
    for (int k = 1; k < N_OUT; k++)
        if (logits[k] > logits[at]) at = k;
    return at;
}

/* Runs the trained model on all images of a set; *out_right: how many are correctly classified. */
static clg_status test(clg_context *context, clg_model *model, const images *set, int *out_right)
{
    clg_session *session;
    const size_t n = (size_t)set->n;
    float *logits = malloc(n * N_OUT * sizeof *logits);
    clg_status s =
        logits ? clg_session_create(context, model, NULL, &session) : CLG_ERROR_OUT_OF_HOST_MEMORY;
    *out_right = 0;
    if (s == CLG_OK) {
        s = clg_session_set_input_data(session, "image", CLG_FLOAT32, 2,
                                       (const int64_t[]){set->n, N_IN}, set->pixels,
                                       n * N_IN * sizeof *set->pixels);
        if (s == CLG_OK) s = clg_session_run(session);
        if (s == CLG_OK)
            s = clg_session_get_output_data(session, "logits", logits, n * N_OUT * sizeof *logits);
        clg_session_free(session);
    }
    for (size_t i = 0; i < n && s == CLG_OK; i++)
        *out_right += largest(logits + i * N_OUT) == set->labels[i];
    free(logits);
    return s;
}

static clg_status work(const images *seen, const images *unseen)
{
    clg_context *context = NULL;
    clg_trainer *trainer = NULL;
    clg_model *trained = NULL;
    int right = 0;
    clg_status s = clg_context_create(NULL, NULL, &context);
    if (s == CLG_OK) s = create(context, &trainer);
    for (uint64_t e = 0; e < N_EPOCHS && s == CLG_OK; e++) s = train_epoch(trainer, seen, e);
    if (s == CLG_OK) s = clg_trainer_model(trainer, &trained);
    if (s == CLG_OK) s = test(context, trained, unseen, &right);
    if (s == CLG_OK) s = clg_model_save(trained, "mnist.onnx", NULL);
    if (s == CLG_OK)
        (void)printf("%d of %d images that it has not seen are right (%.2f %%); mnist.onnx is "
                     "written\n",
                     right, unseen->n, 100.0 * right / unseen->n);
    if (s != CLG_OK) (void)fprintf(stderr, "train_mnist: %s\n", clg_last_error());
    if (s != CLG_OK && clg_last_hint()[0]) (void)fprintf(stderr, "hint: %s\n", clg_last_hint());
    clg_model_free(trained);
    clg_trainer_free(trainer);
    clg_context_free(context);
    return s;
}

int main(int argc, char **argv)
{
    images seen = {0}, unseen = {0};
    int failed =
        argc > 1 ? load(argv[1], "train-images-idx3-ubyte", "train-labels-idx1-ubyte", &seen) ||
                       load(argv[1], "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", &unseen)
                 : generate(6000, 1, &seen) || generate(1000, 2, &unseen);
    const clg_status s = failed ? CLG_ERROR_IO : work(&seen, &unseen);
    release(&seen);
    release(&unseen);
    if (s == CLG_ERROR_NO_OPENCL || s == CLG_ERROR_NO_DEVICE) return 3;
    return s == CLG_OK ? 0 : 1;
}
