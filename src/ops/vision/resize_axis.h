/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the positions in the input of the outputs of a resized axis: a coordinate transformation
 * of Resize as the line (o * step + shift) / unit for output o, in integers, and exactly wherever
 * these fit 64 bits. With floating-point rounding it would be arbitrary whether a position is at an
 * element or between two.
 */
#ifndef CLG_OPS_RESIZE_AXIS_H
#define CLG_OPS_RESIZE_AXIS_H

#include "base/error.h"

typedef enum resize_coordinates {
    COORDINATES_HALF_PIXEL,
    COORDINATES_HALF_PIXEL_SYMMETRIC,
    COORDINATES_PYTORCH_HALF_PIXEL,
    COORDINATES_ALIGN_CORNERS,
    COORDINATES_ASYMMETRIC,
    COORDINATES_CROP,          /* tf_crop_and_resize */
    COORDINATES_HALF_PIXEL_NN, /* tf_half_pixel_for_nn, opset 11 and 12 */
    N_COORDINATES
} resize_coordinates;

/* As ONNX names them; ends with NULL. */
extern const char *const resize_coordinate_words[];

/* An axis of in elements that is resized to out elements. Output o is at position (o * step +
 * shift) / unit of the input. */
typedef struct resize_axis {
    int64_t in, out;
    /* the scale as a ratio of sizes; if scale_den is 0, it is `scale` */
    int64_t scale_num, scale_den;
    float scale;
    float roi_start, roi_end;  /* COORDINATES_CROP */
    int64_t step, shift, unit; /* set by resize_axis_place; unit > 0 */
    bool identity;             /* every output is the input element of the same index */
} resize_axis;

/* Sets step, shift, unit and identity. in and out must be at least 1, scale positive, roi finite
 * and below 1e6 in magnitude. */
void resize_axis_place(resize_axis *a, resize_coordinates mode);
/* Returns the scale, output length / input length, as a double. */
double resize_axis_scale(const resize_axis *a);

#endif
