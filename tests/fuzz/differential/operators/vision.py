# SPDX-License-Identifier: Apache-2.0
"""Operators on images and boxes, and transforms of signals."""

import numpy
from maker import generator


@generator("Resize")
def resize(m):
    rank = m.pick(2, 3, 4, 4, 4)
    shape = [m.int(1, 3) if i < rank - 2 else m.int(2, 8) for i in range(rank)]
    modes = ["nearest", "linear"] + (["cubic"] if m.version >= 11 and rank == 4 else [])
    attributes = {"mode": m.r.choice(modes)}
    dtype = m.type("T1" if m.version >= 11 else "T", ["float32", "float32", "uint8", "int8"])
    x = m.tensor(dtype, shape, 0 if dtype[0] == "u" else -9, 9)
    factors = [1.0] * (rank - 2) + [m.pick(0.5, 1.0, 1.5, 2.0, 3.0) for _ in range(2)]
    scales = numpy.array(factors, numpy.float32)
    if m.version < 11:
        scales = numpy.maximum(scales, 1)
        # Integers are cut off, where rounding may fall short of one.
        steps = int(dtype != "float32" and attributes["mode"] == "linear")
        return m.case(x, m.value(scales, True), steps=steps, **attributes)
    how = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    if m.version >= 19:
        how.append("half_pixel_symmetric")
    attributes["coordinate_transformation_mode"] = m.r.choice(how)
    if attributes["mode"] == "nearest":
        attributes |= m.maybe(0.8, nearest_mode=m.pick("floor", "ceil", "round_prefer_floor",
                                                       "round_prefer_ceil"))
    if attributes["mode"] == "cubic":
        attributes |= m.maybe(0.5, cubic_coeff_a=m.pick(-0.5, -0.75), exclude_outside=m.pick(0, 1))
    if dtype != "float32" and attributes["mode"] != "nearest":
        x = x.astype(numpy.float32)
    roi = None if m.version >= 13 else m.value(numpy.zeros(0, numpy.float32), True)
    if m.chance(0.15) and attributes["mode"] != "cubic":  # a part of the image, and beyond
        attributes["coordinate_transformation_mode"] = "tf_crop_and_resize"
        attributes |= m.maybe(0.6, extrapolation_value=m.float(-5, 5))
        low, high = ([m.float(-0.3, 0.4) for _ in range(2)], [m.float(0.6, 1.2) for _ in range(2)])
        ends = [0.0] * (rank - 2) + low + [1.0] * (rank - 2) + high
        roi = m.value(numpy.array(ends, numpy.float32), True)
    if m.version >= 18 and m.chance(0.3):  # the last two axes, in any order
        axes = m.pick([rank - 2, rank - 1], [rank - 1, rank - 2], [-2, -1])
        attributes["axes"] = axes
        factors = [factors[a] for a in axes]
        scales = numpy.array(factors, numpy.float32)
        shape = [shape[a] for a in axes]
        if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
            ends = [ends[a % rank] for a in axes] + [ends[rank + a % rank] for a in axes]
            roi = m.value(numpy.array(ends, numpy.float32), True)
    if m.chance(0.5):
        sizes = [max(1, int(d * f)) for d, f in zip(shape, factors)]
        if m.version >= 18 and m.chance(0.3) and (rank == 2 or "axes" in attributes):
            attributes["keep_aspect_ratio_policy"] = m.pick("stretch", "not_larger", "not_smaller")
        empty = None if m.version >= 13 else m.value(numpy.zeros(0, numpy.float32), True)
        return m.case(x, roi, empty, m.value(numpy.array(sizes, numpy.int64), m.chance(0.7)),
                      **attributes)
    if m.version >= 18 and attributes["mode"] != "nearest" and m.chance(0.4):
        attributes["antialias"] = 1
    return m.case(x, roi, m.value(scales, m.chance(0.7)), **attributes)


@generator("Upsample")
def upsample(m):
    shape = [m.int(1, 3), m.int(1, 3), m.int(2, 6), m.int(2, 6)]
    scales = [1.0, 1.0, m.pick(1.0, 2.0, 3.0), m.pick(1.0, 2.0)]
    mode = m.pick("nearest", "linear")
    x = m.tensor("float32", shape)
    if m.version < 9:
        return m.case(x, scales=scales, mode=mode)
    return m.case(x, m.value(numpy.array(scales, numpy.float32), True), mode=mode)


@generator("GridSample")
def grid_sample(m):
    three = m.version >= 20 and m.chance(0.3)
    n, c = m.int(1, 2), m.int(1, 3)
    size, out = ([m.int(2, 6) for _ in range(3 if three else 2)] for _ in range(2))
    if m.version >= 20:
        modes = ["linear", "nearest"] + ([] if three else ["cubic"])
    else:
        modes = ["bilinear", "nearest", "bicubic"]
    attributes = m.maybe(0.8, padding_mode=m.pick("zeros", "border", "reflection"),
                         align_corners=m.pick(0, 1))
    x = m.tensor("float32", [n, c] + size)
    grid = m.tensor("float32", [n] + out + [3 if three else 2], -1.2, 1.2)
    return m.case(x, grid, mode=m.r.choice(modes), **attributes)


@generator("AffineGrid")
def affine_grid(m):
    three = m.chance(0.4)
    n, d = m.int(1, 3), 3 if three else 2
    size = [n, m.int(1, 3)] + [m.int(1, 6) for _ in range(d)]
    theta = m.tensor(m.type("T1"), [n, d, d + 1])
    size = m.value(numpy.array(size, numpy.int64), m.chance(0.7))
    return m.case(theta, size, **m.maybe(0.6, align_corners=m.pick(0, 1)))


@generator("RoiAlign", "MaxRoiPool")
def roi(m):
    n, c, h, w = m.int(1, 3), m.int(1, 3), m.int(5, 10), m.int(5, 10)
    count = m.int(1, 4)
    x = m.tensor("float32", [n, c, h, w])
    start = m.tensor("float32", [count, 2], 0, 4)
    boxes = numpy.concatenate([start, start + m.tensor("float32", [count, 2], 1, 5)], 1)
    scale = m.pick(1.0, 0.5)
    batch = m.n.integers(0, n, (count,))
    if m.operator == "MaxRoiPool":
        boxes = numpy.concatenate([batch[:, None], numpy.round(boxes)], 1).astype(numpy.float32)
        return m.case(x, boxes, pooled_shape=[m.int(1, 4), m.int(1, 4)], spatial_scale=scale)
    attributes = dict(output_height=m.int(1, 4), output_width=m.int(1, 4), spatial_scale=scale,
                      sampling_ratio=m.int(0, 3)) | m.maybe(0.5, mode=m.pick("avg", "max"))
    if m.version >= 16:
        attributes |= m.maybe(0.6, coordinate_transformation_mode=m.pick("half_pixel",
                                                                         "output_half_pixel"))
    return m.case(x, boxes.astype(numpy.float32), batch.astype(numpy.int64), **attributes)


@generator("NonMaxSuppression")
def non_max_suppression(m):
    n, boxes, classes = m.int(1, 2), m.int(1, 12), m.int(1, 3)
    start = m.tensor("float32", [n, boxes, 2], 0, 5)
    corners = numpy.concatenate([start, start + m.tensor("float32", [n, boxes, 2], 0.5, 4)], 2)
    scores = (m.distinct("float32", [n, classes, boxes]) / 10).astype(numpy.float32)
    inputs = [corners.astype(numpy.float32), scores]
    inputs.append(numpy.array([m.int(1, 6)], numpy.int64) if m.chance(0.85) else None)
    inputs.append(numpy.array([m.float(0.1, 0.9)], numpy.float32) if m.chance(0.7) else None)
    inputs.append(numpy.array([m.float(-0.5, 0.5)], numpy.float32) if m.chance(0.5) else None)
    return m.case(*inputs, **m.maybe(0.4, center_point_box=m.pick(0, 1)))


@generator("DFT")
def dft(m):
    length = m.pick(1, 2, 3, 5, 8, 12, 17)
    batch = m.shape(1, 2, zero=False, most=12)
    onesided = m.chance(0.3)
    inverse = not onesided and m.chance(0.4)
    x = m.tensor("float32", batch + [length, 1 if onesided or m.chance(0.5) else 2])
    axis = len(batch)
    attributes = m.maybe(1.0, inverse=1) if inverse else {}
    if onesided:
        attributes["onesided"] = 1
    size = numpy.array(m.pick(length, length + 2, max(1, length - 1)), numpy.int64)
    size = m.value(size, True) if m.chance(0.4) else None
    if m.chance(0.3):  # another axis of signals
        other = m.int(0, axis)
        x, axis = numpy.swapaxes(x, other, axis), other
    axis = m.pick(axis, axis - x.ndim)
    if m.version < 20:
        return m.case(x, size, axis=axis, **attributes)
    return m.case(x, size, m.value(numpy.array(axis, numpy.int64), True), **attributes)


@generator("STFT")
def stft(m):
    frame = m.pick(4, 8, 16)
    signal = m.tensor("float32", [m.int(1, 2), frame * m.int(2, 4) + m.int(0, 3), 1])
    step = m.value(numpy.array(m.int(1, frame), numpy.int64), True)
    window = m.tensor("float32", [frame], 0.1, 1)
    length = m.value(numpy.array(frame, numpy.int64), True)
    which = m.pick("window", "length", "both")
    inputs = [signal, step, None if which == "length" else window,
              None if which == "window" else length]
    if which == "window":
        m.case_.constants = {k: v for k, v in m.case_.constants.items() if k != length}
    return m.case(*inputs, onesided=m.pick(0, 1))


@generator("BlackmanWindow", "HannWindow", "HammingWindow")
def window(m):
    size = numpy.array(m.int(1, 30), m.pick(numpy.int32, numpy.int64))
    attributes = m.maybe(0.6, periodic=m.pick(0, 1)) | m.maybe(0.3, output_datatype=1)
    return m.case(size, **attributes)


@generator("MelWeightMatrix")
def mel(m):
    values = [m.int(2, 10), m.pick(16, 32, 64), m.pick(8000, 16000)]
    arrays = [numpy.array(v, numpy.int64) for v in values]
    arrays += [numpy.array(m.float(0, 50), numpy.float32),
               numpy.array(m.float(2000, 3900), numpy.float32)]
    return m.case(*arrays)
