/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library and the module clgraph-images say to each other. The module decodes images; it
 * is a separate shared library, opened when a first image is decoded, so that programs that
 * decode none do not load the libraries of image formats. See decision 87.
 */
#ifndef CLG_IMAGES_IMAGES_H
#define CLG_IMAGES_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGES_WHY_BYTES 192

typedef enum images_code {
    IMAGES_OK,
    IMAGES_UNKNOWN, /* the bytes are none of the formats */
    IMAGES_ABSENT,  /* the module was built without the format's library */
    IMAGES_DAMAGED, /* or of a kind of its format that is not read */
    IMAGES_TOO_LARGE,
    IMAGES_NO_MEMORY
} images_code;

typedef struct images_request {
    const unsigned char *bytes; /* the whole file */
    size_t n_bytes;
    int channels;  /* of the result: 1, 3 or 4; 0: only the size is wanted */
    bool keeps_16; /* results of 16 bits where the file has more than 8; else the upper 8 */
    uint64_t max_pixels;
    void *(*alloc)(size_t size_bytes); /* for the pixels; NULL when memory is missing */
    void (*free)(void *memory);        /* accepts NULL */
} images_request;

typedef struct images_result {
    const char *format; /* "PNG"; NULL: unknown */
    uint32_t width, height;
    bool is_16;
    void *pixels; /* [height, width, channels] of uint8 or uint16; from `alloc`; NULL on failure */
    /* What is wrong, as the end of a sentence: "is damaged: it ends too early". */
    char why[IMAGES_WHY_BYTES];
} images_result;

/* The module's only function. Gray is computed as Pillow does; an image without alpha is opaque,
 * and alpha that is not wanted is dropped. Any thread. */
typedef images_code images_decode_function(const images_request *request,
                                           images_result *out_result);
#define IMAGES_DECODE_NAME "clgraph_images_decode_1" /* another number where this header changes */

#endif
