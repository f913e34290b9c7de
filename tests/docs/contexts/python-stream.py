# SPDX-License-Identifier: Apache-2.0
import clgraph
import numpy as np

session = clgraph.InferenceSession("models/scores.onnx")
rows = np.load("big.npy")
n = 0
# @BLOCK@
assert probabilities.shape == (4,) and label.shape == ()
