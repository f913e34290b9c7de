# SPDX-License-Identifier: Apache-2.0
"""Recognises handwritten digits: python examples/python/digits.py"""

import pathlib

import clgraph
import numpy as np

folder = pathlib.Path(__file__).parents[1] / "digits"
session = clgraph.InferenceSession(folder / "digits.onnx")
images = np.load(folder / "heldout.npy")  # [360,1,8,8], 0 to 1
(probabilities,) = session.run(None, {"image": images})
right = (probabilities.argmax(axis=1) == np.load(folder / "heldout_labels.npy")).mean()
print(f"{right:.1%} of {len(images)} digits are right, on {session.device.name}")
