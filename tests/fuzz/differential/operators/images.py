# SPDX-License-Identifier: Apache-2.0
"""Encoded images. ONNX's reference decodes them by Pillow."""

import io

import numpy
from maker import generator
from PIL import Image

# {format of Pillow: (options, by how many units decoders may differ)}
FORMATS = {
    "BMP": ({}, 0),
    "PNG": ({}, 0),
    "PPM": ({}, 0),
    "TIFF": ({}, 0),
    "WEBP": ({"lossless": True}, 0),
    "JPEG2000": ({"irreversible": False}, 0),
    "JPEG": ({"quality": 90, "subsampling": 0}, 2),
}


@generator("ImageDecoder")
def image_decoder(m):
    kind = m.r.choice(sorted(FORMATS))
    options, steps = FORMATS[kind]
    pixel_format = m.pick("RGB", "BGR", "Grayscale", None)
    height, width = m.int(1, 40), m.int(1, 40)
    if kind == "JPEG2000":
        options = options | {"num_resolutions": 1}  # of images smaller than the pyramid
    # ONNX's reference makes no colours of gray images.
    gray = pixel_format == "Grayscale" and kind != "WEBP" and m.chance(0.5)
    pixels = m.n.integers(0, 256, (height, width) if gray else (height, width, 3), numpy.uint8)
    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, kind, **options)
    if pixel_format == "Grayscale":
        steps += 1  # rounded once more
    data = numpy.frombuffer(encoded.getvalue(), numpy.uint8)
    return m.case(m.value(data, False), steps=steps, only=["onnx"], pixel_format=pixel_format)
