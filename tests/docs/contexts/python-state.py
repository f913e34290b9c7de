# SPDX-License-Identifier: Apache-2.0
import clgraph
import numpy as np

session = clgraph.InferenceSession("models/state.onnx")
x, zeros, out = (np.zeros((1, 3), np.float32) for _ in range(3))
x += 1
array = np.arange(3)
# @BLOCK@
for _ in range(2):
    session.run(None, {"x": x})
assert (out == 3).all() and (value.numpy() == array).all()
