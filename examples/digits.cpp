/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies images of handwritten digits from files, with an ONNX model: digits.c in C++.
 *
 *     digits_cpp MODEL IMAGE...
 *
 * Exit status: 0 success, 3 no OpenCL device, 1 other errors.
 */
#include <clgraph/clgraph.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

using clock_type = std::chrono::steady_clock;

static double milliseconds_since(clock_type::time_point start)
{
    return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

/* Reads an image as gray values from 0 to 1 into height x width floats. */
static void read_image(const std::string &path, std::size_t height, std::size_t width,
                       clgraph::view<float> pixels)
{
    int w = 0, h = 0, channels = 0;
    const std::unique_ptr<stbi_uc, void (*)(void *)> gray(
        stbi_load(path.c_str(), &w, &h, &channels, 1), stbi_image_free);
    if (!gray) throw std::runtime_error(path + ": " + stbi_failure_reason());
    const auto rows = static_cast<std::size_t>(h), columns = static_cast<std::size_t>(w);
    for (std::size_t y = 0; y < height; y++)
        for (std::size_t x = 0; x < width; x++)
            pixels[y * width + x] =
                gray.get()[(y * rows / height) * columns + x * columns / width] / 255.0f;
}

static void classify(const std::string &model_path, const std::vector<std::string> &paths)
{
    const auto context = clgraph::context::create();
    const clgraph::model model(model_path);
    clgraph::session session(context, model);

    const clg_port &in = model.inputs()[0];
    const clgraph::dims_view size = clgraph::dims_of(in);
    if (size.size() != 4 || size[1] != 1 || size[2] <= 0 || size[3] <= 0)
        throw std::runtime_error(model_path + " does not take gray images of a fixed size");
    const auto n = static_cast<std::int64_t>(paths.size());
    const auto pixels = session.map_input<float>(in, {n, 1, size[2], size[3]});
    const auto height = static_cast<std::size_t>(size[2]),
               width = static_cast<std::size_t>(size[3]);
    for (std::size_t i = 0; i < paths.size(); i++)
        read_image(paths[i], height, width, pixels.sub(i * height * width, height * width));

    const auto start = clock_type::now();
    session.run();
    const clgraph::value answer = session.get_output(model.outputs()[0]);
    const double spent = milliseconds_since(start);

    const auto probabilities = answer.data<float>();
    const auto n_classes = static_cast<std::size_t>(answer.dims()[1]);
    for (std::size_t i = 0; i < paths.size(); i++) {
        const auto row = probabilities.sub(i * n_classes, n_classes);
        const auto best = std::max_element(row.begin(), row.end());
        const std::string name = paths[i].substr(paths[i].rfind('/') + 1);
        std::printf("%-12s %d   %5.1f %%\n", name.c_str(), static_cast<int>(best - row.begin()),
                    100.0 * static_cast<double>(*best));
    }
    std::printf("\n%zu images in %.2f ms on %s\n", paths.size(), spent, context.device().name);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fprintf(stderr, "usage: digits_cpp MODEL IMAGE...\n");
        return 2;
    }
    try {
        classify(argv[1], {argv + 2, argv + argc});
        return 0;
    } catch (const clgraph::error &e) {
        std::fprintf(stderr, "digits_cpp: error: %s\n", e.what());
        if (*e.hint()) std::fprintf(stderr, "hint: %s\n", e.hint());
        return dynamic_cast<const clgraph::no_device *>(&e) ? 3 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "digits_cpp: error: %s\n", e.what());
        return 1;
    }
}
