# SPDX-License-Identifier: Apache-2.0
import shutil

import clgraph
import numpy as np

shutil.copy("models/linear.onnx", "model.onnx")
x = np.load("x.npy")
# @BLOCK@
assert outputs[0].shape == (8, 2)
