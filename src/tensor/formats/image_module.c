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
#include "base/threads.h"
#include "images/images.h"

#include <stdio.h>
#include <string.h>

#define MODULE_NAME "clgraph-images" CLG_MODULE_SUFFIX

/* ---- the module ------------------------------------------------------------------------------ */

static mutex lock = MUTEX_INIT;
static bool was_sought;                      /* guarded by lock, as are those below */
static images_decode_function *decode_image; /* NULL: there is no module */
static char why_not[DYNLIB_WHY_BYTES];

/* Sets *out_path to the module's path, freed by memory_free; NULL and why_not: there is none, or it
 * is not to be used. */
static clg_status find_module(char **out_path)
{
    const char *given = process_is_privileged() ? NULL : env_get("CLG_IMAGES");
    const bool is_off = given && strcmp(given, "off") == 0;
    *out_path = given && !is_off ? memory_strdup(given) : NULL;
    if (given && !is_off && !*out_path) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!given) CLG_TRY(companion_find(MODULE_NAME, out_path));
    if (!*out_path)
        (void)snprintf(why_not, sizeof why_not, "%s",
                       is_off ? "CLG_IMAGES is 'off'" : "it is not beside the library");
    return CLG_OK;
}

static void open_module(const char *path)
{
    void *module = dynlib_open(path, why_not);
    if (module &&
        !dynlib_function(module, IMAGES_DECODE_NAME, &decode_image, sizeof decode_image)) {
        (void)snprintf(why_not, sizeof why_not, "'%s' is of another version", path);
        dynlib_close(module);
    }
}

/* Seeks the module, and opens it. A failure for want of memory says nothing about it: the next call
 * tries again. */
static clg_status seek_module(void)
{
    char *path;
    CLG_TRY(find_module(&path));
    was_sought = true;
    if (path) {
        open_module(path);
        log_write(CLG_LOG_INFO, "images: %s%s", decode_image ? "opened " : "",
                  decode_image ? path : why_not);
    }
    memory_free(path);
    return CLG_OK;
}

/* Sets *out_decode to the module's function. */
static clg_status get_module(images_decode_function **out_decode)
{
    clg_status status = CLG_OK;
    mutex_lock(&lock);
    if (!was_sought) status = seek_module();
    *out_decode = decode_image;
    if (status == CLG_OK && !decode_image)
        status = error_set(CLG_ERROR_UNSUPPORTED_OPERATOR,
                           "the image is not decoded without clgraph-images: %s", why_not);
    mutex_unlock(&lock);
    return status;
}

/* ---- images ---------------------------------------------------------------------------------- */

static clg_status run(const images_request *request, images_result *out_result)
{
    images_decode_function *decode;
    CLG_TRY(get_module(&decode));
    const images_code code = decode(request, out_result);
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
