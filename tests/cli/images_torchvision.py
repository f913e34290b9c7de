#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Presets of cltool beside torchvision's transforms:  images_torchvision.py CLTOOL MODEL

MODEL returns its input [n,3,h,w]. Bounds before normalisation, where pixels go from 0 to 1:
1 / 255 for PNG files, 3 / 255 for JPEG files, whose inverse DCTs differ.
"""

import math
import os
import random
import subprocess
import sys

import numpy
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode, _presets

noise = random.Random(75)
failures = 0
BICUBIC = InterpolationMode.BICUBIC
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5,) * 3, (0.5,) * 3)


def of(resize, crop, numbers):
    steps = [resize] + ([transforms.CenterCrop(crop)] if crop else [])
    return transforms.Compose(steps + [transforms.ToTensor(), transforms.Normalize(*numbers)])


# the preset, or other options; what torchvision does; mean and std
CASES = [
    ("--preset imagenet", _presets.ImageClassification(crop_size=224), IMAGENET),
    (
        "--preset imagenet-v2",
        _presets.ImageClassification(crop_size=224, resize_size=232),
        IMAGENET,
    ),
    ("--preset inception", _presets.ImageClassification(crop_size=299, resize_size=342), IMAGENET),
    (
        "--preset clip",
        of(transforms.Resize(224, interpolation=BICUBIC), 224, CLIP),
        CLIP,
    ),
    (
        "--preset dinov2",
        of(transforms.Resize(256, interpolation=BICUBIC), 224, IMAGENET),
        IMAGENET,
    ),
    ("--preset siglip", of(transforms.Resize((224, 224), interpolation=BICUBIC), 0, HALF), HALF),
    ("--preset vit", of(transforms.Resize((224, 224)), 0, HALF), HALF),
    ("--preset segmentation", _presets.SemanticSegmentation(resize_size=520), IMAGENET),
    ("--preset detr", of(transforms.Resize(800, max_size=1333), 0, IMAGENET), IMAGENET),
    (
        "--resize short:97 --crop 131x64",
        of(transforms.Resize(97), (131, 64), ((0,) * 3, (1,) * 3)),
        ((0,) * 3, (1,) * 3),
    ),
    (
        "--crop 150x151",
        of(transforms.Lambda(lambda image: image), (150, 151), ((0,) * 3, (1,) * 3)),
        ((0,) * 3, (1,) * 3),
    ),
]


def photograph(width, height):
    """Waves, an edge and noise, of odd sizes."""
    rows, columns = numpy.mgrid[0:height, 0:width]
    layers = []
    for _ in range(3):
        a, b, c = (noise.uniform(0.02, 0.4) for _ in range(3))
        layer = 127 + 90 * numpy.sin(a * rows + b * columns) + 40 * numpy.cos(c * columns)
        layer += 60 * (rows * 3 > columns * 2)
        layers.append(
            layer + numpy.random.RandomState(noise.randrange(9999)).normal(0, 12, layer.shape)
        )
    return Image.fromarray(numpy.clip(numpy.stack(layers, 2), 0, 255).astype("uint8"))


def make_files():
    paths = []
    for kind in ("png", "jpg"):
        for _ in range(20):
            width, height = (2 * int(math.exp(noise.uniform(3.9, 6.2))) + 1 for _ in range(2))
            paths.append("%02d-%dx%d.%s" % (len(paths), width, height, kind))
            photograph(width, height).save(paths[-1], quality=92)
    return paths


def loaded(path, words, to):
    command = [sys.argv[1], "run", sys.argv[2], "--image", path, "-o", to, "-q", "--force"]
    result = subprocess.run(command + words.split(), capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit("%s %s: exit %d\n%s" % (path, words, result.returncode, result.stderr))
    return torch.from_numpy(numpy.load(to + "/y.npy"))[0]


def compare(words, transform, numbers, paths):
    global failures
    std = torch.tensor(numbers[1]).reshape(3, 1, 1)
    worst = {"png": 0.0, "jpg": 0.0}
    for path in paths:
        kind, bound = (path[-3:], 1.0001 if path.endswith("png") else 4.001)
        with Image.open(path) as image:
            wanted = transform(image.convert("RGB"))
        got = loaded(path, words, "out")
        if got.shape != wanted.shape:
            error = math.inf
        else:
            error = float(((got - wanted) * std).abs().max()) * 255
        worst[kind] = max(worst[kind], error)
        if not error <= bound:
            failures += 1
            print(
                "%s %s: differs by %g levels, shapes %s and %s"
                % (path, words, error, tuple(got.shape), tuple(wanted.shape))
            )
    print(
        "%-32s largest difference %.3f levels of PNG, %.3f of JPEG"
        % (words, worst["png"], worst["jpg"])
    )


files = make_files()
for case in CASES:
    # all files with the first and the bicubic filter, every fourth with the others
    compare(*case, files if case[0].split()[-1] in ("imagenet", "clip", "64") else files[::4])
sys.exit(1 if failures else 0)
