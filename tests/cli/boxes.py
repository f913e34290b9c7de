#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs of detectors for boxes.sh:  boxes.py FORMAT

Writes float32 files OUTPUT.bin, and prints a line "OUTPUT DIM..." for each. The boxes are those of
BOXES in an image of 64x48 that lies in an input of 32x32 as --resize pad has it: half its size, 4
rows from the top. The second box overlaps with the first one, and has a lower score.
"""

import math
import struct
import sys

# left, top, right, bottom, score, class
BOXES = [
    (10, 6, 26, 22, 0.9, 1),
    (12, 6, 28, 22, 0.8, 1),
    (11, 6, 27, 22, 0.75, 0),
    (40, 20, 60, 44, 0.85, 0),
    (0, 0, 64, 48, 0.1, 0),
]
N_CLASSES = 2
STRIDES = (8, 16, 32)
EPSILON = 1e-9


def in_input(b):
    return [b[0] / 2, b[1] / 2 + 4, b[2] / 2, b[3] / 2 + 4]


def corners(b, unit=1):
    return [n / unit for n in in_input(b)]


def centre(b, unit=1):
    left, top, right, bottom = corners(b, unit)
    return [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]


def one_hot(b, before=0):
    return [b[4] if c == b[5] + before else 0 for c in range(N_CLASSES + before)]


def logit(p):
    return math.log(max(p, EPSILON) / max(1 - p, EPSILON))


def flat(rows):
    return [x for row in rows for x in row]


def write(name, dims, numbers):
    assert math.prod(dims) == len(numbers), (name, dims, len(numbers))
    with open(name + ".bin", "wb") as file:
        file.write(struct.pack("<%df" % len(numbers), *numbers))
    print(name, *dims)


def cells():
    """For each cell of all grids: its stride, column and row."""
    return [
        (stride, at % (32 // stride), at // (32 // stride))
        for stride in STRIDES
        for at in range((32 // stride) ** 2)
    ]


def cell_numbers(b, cell):
    stride, column, row = cell
    x, y, w, h = centre(b)
    return [x / stride - column, y / stride - row, math.log(w / stride), math.log(h / stride)]


def by_cells(rest):
    """Numbers of all cells; box k is in cell 4 k of 21, at all three strides."""
    rows = [[0.0] * 4 + rest(None) for _ in cells()]
    for k, b in enumerate(BOXES):
        at = min(5 * k, 20)
        rows[at] = cell_numbers(b, cells()[at]) + rest(b)
    return rows


n = len(BOXES)
kind = sys.argv[1]
if kind == "yolov5":
    # the score is the product of objectness and class
    write("y", (1, n, 7), flat(centre(b) + [0.95] + [s / 0.95 for s in one_hot(b)] for b in BOXES))
elif kind == "yolov8":
    write("y", (1, 6, n), flat(zip(*(centre(b) + one_hot(b) for b in BOXES))))
elif kind == "yolov10":
    write("y", (1, n, 6), flat(corners(b) + [b[4], b[5]] for b in BOXES))
elif kind == "yolox":
    rows = by_cells(lambda b: [1] + one_hot(b) if b else [0, 0, 0])
    write("y", (1, 21, 7), flat(rows))
elif kind in ("ssd", "tf-ssd"):
    swapped = kind == "tf-ssd"
    boxes = [corners(b, 32) for b in BOXES]
    write("boxes", (1, n, 4), flat([b[1], b[0], b[3], b[2]] if swapped else b for b in boxes))
    write("classes", (1, n), [b[5] for b in BOXES])
    write("scores", (1, n), [b[4] for b in BOXES])
elif kind == "torchvision":
    write("boxes", (n, 4), flat(corners(b) for b in BOXES))
    write("labels", (n,), [b[5] for b in BOXES])
    write("scores", (n,), [b[4] for b in BOXES])
elif kind == "ultraface":
    write("scores", (1, n, 3), flat(one_hot(b, 1) for b in BOXES))
    write("boxes", (1, n, 4), flat(corners(b, 32) for b in BOXES))
elif kind == "yunet":
    rows = by_cells(lambda b: [b[4], b[4]] if b else [0, 0])
    first = 0
    for stride in STRIDES:
        part = rows[first : first + (32 // stride) ** 2]
        first += len(part)
        write("cls_%d" % stride, (1, len(part), 1), [row[4] for row in part])
        write("obj_%d" % stride, (1, len(part), 1), [row[5] for row in part])
        write("bbox_%d" % stride, (1, len(part), 4), flat(row[:4] for row in part))
elif kind == "detr":
    # logits whose softmax has the score, and the rest for no object
    rows = [[math.log(max(s, EPSILON)) for s in one_hot(b) + [1 - b[4]]] for b in BOXES]
    write("logits", (1, n, 3), flat(rows))
    write("pred_boxes", (1, n, 4), flat(centre(b, 32) for b in BOXES))
elif kind == "rtdetr":
    write("logits", (1, n, 2), flat([logit(s) for s in one_hot(b)] for b in BOXES))
    write("pred_boxes", (1, n, 4), flat(centre(b, 32) for b in BOXES))
elif kind == "broken":
    broken = [math.nan, math.inf, -math.inf, 1e30]
    write("y", (1, 4, 6), flat([x, 0, 5, 5, 0.9, 0] for x in broken))
elif kind == "broken-classes":
    write("y", (1, 4, 6), flat([0, 0, 5, 5, 0.9, c] for c in (math.nan, -1, 1e20, 7)))
elif kind == "many":
    write("y", (1, 10001, 6), flat([0, 8, 32, 24, i / 10001, i % 7] for i in range(10001)))
elif kind == "scores":
    # [1,3,4,4]: class 0 at the left, 1 in the upper, 2 in the lower right half
    planes = [[0.0] * 16 for _ in range(3)]
    for at in range(16):
        planes[0 if at % 4 < 2 else 1 if at < 8 else 2][at] = 1.0
    write("y", (1, 3, 4, 4), flat(planes))
elif kind == "mask":
    write("y", (1, 1, 4, 4), [0.6 if at % 4 < 2 else 0.4 for at in range(16)])
else:
    sys.exit("no format " + kind)
