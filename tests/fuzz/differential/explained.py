# SPDX-License-Identifier: Apache-2.0
"""Differences that are right, each with the sentence of the standard or the bound of numerics.md.
"""

import onnx


def attributes(case):
    """The attributes of the last node of CASE."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in case.nodes[-1].attribute}


def window(case):
    """The lengths of the window of CASE, with dilations."""
    given = attributes(case)
    weights = case.nodes[-1].input[1:2]
    values = case.inputs | case.constants
    kernel = given.get("kernel_shape") or (values[weights[0]].shape[2:] if weights else [])
    return [(k - 1) * d + 1 for k, d in zip(kernel, given.get("dilations", [1] * len(kernel)))]


def stride_beyond_window(case):
    given = attributes(case)
    return given.get("auto_pad", b"").startswith(b"SAME") and any(
        s > k for s, k in zip(given.get("strides", []), window(case))
    )


def shape_from_before_the_first(case):
    given = attributes(case)
    rank = next(iter((case.inputs | case.constants).values())).ndim
    return min(given.get("start", 0), given.get("end", 0)) < -rank


def one_element_of_a_symmetric_window(case):
    size = next(iter((case.inputs | case.constants).values()))
    return attributes(case).get("periodic", 1) == 0 and int(size) == 1


def first_shape(case):
    return next(iter((case.inputs | case.constants).values())).shape


def cubic_over_a_border(case):
    given = attributes(case)
    is_cubic = given.get("mode", b"") in (b"bicubic", b"cubic")
    return is_cubic and given.get("padding_mode") == b"border"


# (operators, rival or "", test of the case, why). At most 20. A process that dies is never right.
ROWS = [
    (
        ["MaxPool", "NhwcMaxPool", "QLinearAveragePool"],
        "",
        stride_beyond_window,
        "auto_pad SAME with a stride beyond the window: by the standard's formula the padding is "
        "negative. clgraph pads nothing, as TensorFlow, where SAME is from; ONNX Runtime refuses "
        "it in MaxPool and crops in the others",
    ),
    (
        ["ConvTranspose"],
        "",
        stride_beyond_window,
        "auto_pad SAME: output_shape[i] = input_shape[i] * strides[i] (ONNX, ConvTranspose); where "
        "the stride is beyond the window, ONNX Runtime gives fewer elements, and ONNX's reference "
        "shifts them",
    ),
    (
        ["MaxPool"],
        "onnx",
        lambda case: attributes(case).get("auto_pad") == b"SAME_LOWER",
        "output_spatial_shape[i] = ceil(input_spatial_shape[i] / strides[i]) (ONNX, MaxPool, "
        "auto_pad SAME); ONNX's reference rounds down for SAME_LOWER",
    ),
    (
        ["LpPool"],
        "onnx",
        lambda case: attributes(case).get("ceil_mode", 0) == 1,
        "the sum over the window (ONNX, LpPool); ONNX's reference takes the mean of the elements "
        "that there are times the size of the window, which is more where ceil_mode lets it reach "
        "beyond",
    ),
    (
        ["LRN"],
        "onnx",
        lambda case: first_shape(case)[0] != first_shape(case)[1],
        "square_sum of each channel c (ONNX, LRN); the loop over c of ONNX's reference ends at the "
        "length of the batch",
    ),
    (
        ["GridSample"],
        "ort",
        cubic_over_a_border,
        "a location beyond the border is moved to it before the interpolation, as in ONNX's "
        "reference, which does not know the older name bicubic; ONNX Runtime moves the taps, as "
        "PyTorch",
    ),
    (
        ["Shape"],
        "onnx",
        shape_from_before_the_first,
        "start and end are clamped to [0, r] (ONNX, Shape); ONNX's reference counts them from the "
        "end once more",
    ),
    (
        ["HannWindow", "HammingWindow", "BlackmanWindow"],
        "",
        one_element_of_a_symmetric_window,
        "a symmetric window of one element divides by 0 in the standard's formula; clgraph gives "
        "1, as NumPy and PyTorch",
    ),
    (
        ["Hardmax"],
        "onnx",
        lambda case: case.opsets[""] < 13,
        "before opset 13 Hardmax flattens to a matrix at axis (ONNX, Hardmax-1 and -11: the input "
        "is coerced into 2-D); ONNX's reference takes the one axis in every version",
    ),
]


def reason(case, rival):
    """Why CASE, whose last node counts, may differ from RIVAL; None if that is not explained."""
    for operators, by, test, why in ROWS:
        if by in ("", rival) and case.nodes[-1].op_type in operators and test(case):
            return why
    return None
