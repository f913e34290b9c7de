/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizes decoded images as Pillow's BILINEAR and BICUBIC do, with antialias.
 */
#ifndef CLTOOL_RESAMPLE_H
#define CLTOOL_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* A decoded image: [height, width, channels], row-major; elements of 8 bits, or of 16 if is_deep.
 */
typedef struct raster {
    int width, height, channels; /* 1, 3 or 4 channels */
    bool is_deep;
    void *pixels; /* of value, or from stb_image; freed by raster_free */
    struct clg_value *value;
} raster;

/* What is computed along one axis: the axis is resized to `size` elements, of which `n` are
 * wanted, from element `first` on. Elements outside of 0 to size - 1 are 0. */
typedef struct resample_axis {
    int64_t size, first;
    int n;
} resample_axis;

typedef enum resample_filter { RESAMPLE_BILINEAR, RESAMPLE_BICUBIC } resample_filter;

/* Computes y->n rows of x->n pixels, from 0 to 1, with the image's channels. Returns them as
 * [y->n, x->n, channels], to be freed with free(); NULL when out of memory. Pixels that
 * no wanted element depends on are not read; the memory used is that of the result. Any thread. */
double *resample(const raster *from, resample_filter kind, const resample_axis *x,
                 const resample_axis *y);

#endif
