/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads an image with cltool's reader: in its own size, then resized in each way. The first byte
 * selects channels and layout, and whether stb_image decodes it too; the image follows. Images of
 * more than a million pixels are left out by the size in their header.
 */
#include "fuzz.h"

#include "image.h"
#include "image_stb.h"
#include "output.h"

#include "support/platform.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS (1 << 20)

static void load(const char *path, const options *o, const int64_t *dims, int rank, clg_dtype dtype)
{
    const char *paths[] = {path};
    clg_port port = {.name = "x", .dtype = dtype, .rank = rank};
    input_item item = {.port = &port, .rank = (size_t)rank, .has_dims = true};
    for (int i = 0; i < rank; i++) item.dims[i] = port.dims[i] = dims[i];
    item.images = paths;
    item.n_images = 1;
    if (image_load(o, &item) != CODE_DONE) fuzz_require(failure_is_recorded() && !item.value);
    clg_value_free(item.value);
    free(item.places);
    failure_clear();
}

/* Decodes by stb_image, as cltool does where the library has no decoder for the format. */
static void load_by_stb(const char *path, int channels)
{
    raster image = {.channels = channels};
    if (image_stb_read(path, MAX_PIXELS, &image) == CODE_DONE)
        fuzz_require(image.pixels && image.width > 0 && image.height > 0);
    else
        fuzz_require(failure_is_recorded() && !image.pixels);
    image_stb_free(&image);
    failure_clear();
}

/* Makes the library find its module, beside the build and not beside this program. */
static void show_module(void)
{
#ifdef CLG_TEST_IMAGES
    if (!getenv("CLG_IMAGES")) (void)platform_set_env("CLG_IMAGES", CLG_TEST_IMAGES);
#endif
}

void fuzz_image(const uint8_t *data, size_t size_bytes)
{
    static const char *const ways[] = {"stretch", "crop", "pad", "corner", "short:3", "short:9:20"};
    if (size_bytes < 2) return;
    const uint8_t how = *data++;
    size_bytes--;
    const char *path = fuzz_file("fuzz.image", data, size_bytes);
    output_setup(true);
    show_module();
    if (how & 64) load_by_stb(path, how & 4 ? 1 : 3);
    options o = {
        .quiet = true, .scale = 1, .max_pixels = MAX_PIXELS, .layout = how & 1 ? "nhwc" : NULL};
    o.channels = how & 2 ? "bgr" : how & 4 ? "gray" : NULL;
    if (how & 8) o.mean = "0.5", o.std = how & 4 ? "0.25" : "0.25,0.5,1";
    const int64_t c = how & 2 ? 3 : how & 4 ? 1 : how & 16 ? 4 : 3;
    const int64_t free_first[4] = {-1, c, -1, -1}, free_last[4] = {-1, -1, -1, c};
    load(path, &o, how & 1 ? free_last : free_first, 4, CLG_FLOAT32);
    const int64_t first[4] = {1, c, 7, 5}, last[4] = {1, 7, 5, c}, plane[2] = {3, 4};
    load(path, &o, how & 1 ? last : first, 4, CLG_FLOAT32);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        o.resize = ways[i];
        o.crop = strncmp(ways[i], "short", 5) == 0 ? "7x5" : NULL;
        o.filter = how & 64 ? "bicubic" : NULL;
        o.pad = how & 128 ? "114" : NULL;
        load(path, &o, how & 1 ? last : first, 4, how & 32 ? CLG_UINT8 : CLG_FLOAT32);
    }
    if (how & 4) load(path, &o, plane, 2, CLG_FLOAT32);
}
