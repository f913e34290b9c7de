/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements image_module.h.
 */
#include "tensor/formats/image_module.h"

#include "base/files.h"
#include "base/library/companion.h"
#include "base/library/dynlib.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "images/images.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MODULE_NAME "clgraph-images" CLG_MODULE_SUFFIX

/* ---- the module ------------------------------------------------------------------------------ */

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static images_decode_function *decode_image; /* NULL: there is no module */
static char why_not[DYNLIB_WHY_BYTES];

/* Returns the module's path, freed by memory_free; NULL and why_not: there is none, or it is not to
 * be used. */
static char *find_module(void)
{
    const char *given = process_is_privileged() ? NULL : env_get("CLG_IMAGES");
    const bool is_off = given && strcmp(given, "off") == 0;
    char *path = given && !is_off ? memory_strdup(given) : NULL;
    if (!given && companion_find(MODULE_NAME, &path) != CLG_OK) path = NULL;
    if (!path)
        (void)snprintf(why_not, sizeof why_not, "%s",
                       is_off ? "CLG_IMAGES is 'off'" : "it is not beside the library");
    return path;
}

static void open_module(void)
{
    char *path = find_module();
    if (!path) return;
    void *module = dynlib_open(path, why_not);
    if (module &&
        !dynlib_function(module, IMAGES_DECODE_NAME, &decode_image, sizeof decode_image)) {
        (void)snprintf(why_not, sizeof why_not, "'%s' is of another version", path);
        dynlib_close(module);
    }
    log_write(CLG_LOG_INFO, "images: %s%s", decode_image ? "opened " : "",
              decode_image ? path : why_not);
    memory_free(path);
}

/* ---- images ---------------------------------------------------------------------------------- */

static clg_status run(const images_request *request, images_result *out_result)
{
    (void)pthread_once(&open_once, open_module);
    if (!decode_image)
        return error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                         "the image is not decoded without clgraph-images: %s", why_not);
    const images_code code = decode_image(request, out_result);
    clg_status status = CLG_ERROR_INTERNAL;
    switch (code) {
    case IMAGES_OK: return CLG_OK;
    case IMAGES_UNKNOWN:
    case IMAGES_DAMAGED: status = CLG_ERROR_DATA; break;
    case IMAGES_ABSENT: status = CLG_ERROR_UNSUPPORTED_OPERATOR; break;
    case IMAGES_TOO_LARGE: status = CLG_ERROR_LIMIT; break;
    case IMAGES_NO_MEMORY:
        status = memory_budget_was_refused() ? CLG_ERROR_LIMIT : CLG_ERROR_OUT_OF_HOST_MEMORY;
        break;
    }
    return error_set(status, "the image %s",
                     out_result->why[0] ? out_result->why
                                        : "cannot be decoded: out of host memory");
}

clg_status image_module_look(const void *bytes, size_t n_bytes, uint64_t max_pixels,
                             const char **out_format, int64_t *out_width, int64_t *out_height)
{
    const images_request request = {.bytes = bytes,
                                    .n_bytes = n_bytes,
                                    .max_pixels = max_pixels,
                                    .alloc = memory_alloc,
                                    .free = memory_free};
    images_result result;
    CLG_TRY(run(&request, &result));
    if (out_format) *out_format = result.format;
    if (out_width) *out_width = result.width;
    if (out_height) *out_height = result.height;
    return CLG_OK;
}

clg_status image_module_decode(const void *bytes, size_t n_bytes, int channels, bool keeps_16,
                               uint64_t max_pixels, tensor **out_tensor)
{
    const images_request request = {.bytes = bytes,
                                    .n_bytes = n_bytes,
                                    .channels = channels,
                                    .keeps_16 = keeps_16,
                                    .max_pixels = max_pixels,
                                    .alloc = memory_alloc,
                                    .free = memory_free};
    images_result result;
    *out_tensor = NULL;
    CLG_TRY(run(&request, &result));
    const shape dims = {3, {result.height, result.width, channels}};
    const clg_status status = tensor_wrap(result.is_16 ? CLG_UINT16 : CLG_UINT8, &dims,
                                          result.pixels, memory_free, result.pixels, out_tensor);
    if (status != CLG_OK) memory_free(result.pixels);
    return status;
}
