/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies images of handwritten digits from files, with an ONNX model.
 *
 *     digits MODEL IMAGE...
 *
 * Each image is converted to grayscale, scaled to the size of the model's input and passed as
 * float32 values from 0 to 1, all in one batch. Exit status: 0 success, 3 no OpenCL device, 1 other
 * errors.
 */
#include <clgraph/clgraph.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#endif
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

static double milliseconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int complain(clg_status status, const char *what)
{
    fprintf(stderr, "digits: error: %s: %s\n", what, clg_last_error());
    if (clg_last_hint()[0]) fprintf(stderr, "hint: %s\n", clg_last_hint());
    return status == CLG_ERROR_NO_OPENCL || status == CLG_ERROR_NO_DEVICE ? 3 : 1;
}

/* Reads an image as gray values from 0 to 1 into height x width floats. */
static int read_image(const char *path, int height, int width, float *pixels)
{
    int w, h, channels;
    unsigned char *gray = stbi_load(path, &w, &h, &channels, 1);
    if (!gray) {
        fprintf(stderr, "digits: error: %s: %s\n", path, stbi_failure_reason());
        return 1;
    }
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            pixels[y * width + x] = (float)gray[(y * h / height) * w + x * w / width] / 255.0f;
    stbi_image_free(gray);
    return 0;
}

static void print_answers(char **paths, int n, const float *probabilities, int n_classes)
{
    for (int i = 0; i < n; i++) {
        const float *p = probabilities + (size_t)i * (size_t)n_classes;
        int best = 0;
        for (int k = 1; k < n_classes; k++)
            if (p[k] > p[best]) best = k;
        const char *name = strrchr(paths[i], '/');
        printf("%-12s %d   %5.1f %%\n", name ? name + 1 : paths[i], best, 100.0 * (double)p[best]);
    }
}

/* Loads the model, runs the n images as one batch, and prints the answers and the time. Returns the
 * exit status. */
static int classify(clg_context *context, const char *model_path, char **paths, int n)
{
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_value *answer = NULL;
    void *pixels = NULL;
    int result = 1;
    clg_status status = clg_model_load_file(model_path, NULL, &model);
    if (status == CLG_OK) status = clg_session_create(context, model, NULL, &session);
    if (status != CLG_OK) {
        result = complain(status, model_path);
        goto done;
    }
    const clg_port *in = clg_model_input(model, 0), *out = clg_model_output(model, 0);
    if (in->rank != 4 || in->dims[1] != 1 || in->dims[2] <= 0 || in->dims[3] <= 0) {
        fprintf(stderr, "digits: error: %s does not take gray images of a fixed size\n",
                model_path);
        goto done;
    }
    const int64_t dims[4] = {n, 1, in->dims[2], in->dims[3]};
    size_t image = (size_t)(dims[2] * dims[3]);
    status = clg_session_map_input(session, in->name, 4, dims, &pixels);
    for (int i = 0; i < n && status == CLG_OK; i++)
        if (read_image(paths[i], (int)dims[2], (int)dims[3], (float *)pixels + (size_t)i * image))
            goto done;

    double start = milliseconds();
    if (status == CLG_OK) status = clg_session_run(session);
    if (status == CLG_OK) status = clg_session_get_output(session, out->name, &answer);
    double spent = milliseconds() - start;
    if (status != CLG_OK) {
        result = complain(status, "prediction");
        goto done;
    }
    print_answers(paths, n, clg_value_data(answer), (int)clg_value_dims(answer)[1]);
    printf("\n%d images in %.2f ms on %s\n", n, spent, clg_context_device(context)->name);
    result = 0;
done:
    clg_value_free(answer);
    clg_session_free(session);
    clg_model_free(model);
    return result;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: digits MODEL IMAGE...\n");
        return 2;
    }
    double start = milliseconds();
    clg_context *context;
    clg_status status = clg_context_create(NULL, NULL, &context);
    if (status != CLG_OK) return complain(status, "no device");
    int result = classify(context, argv[1], argv + 2, argc - 2);
    clg_context_free(context);
    if (result == 0) printf("%.0f ms in all, from start to end\n", milliseconds() - start);
    return result;
}
