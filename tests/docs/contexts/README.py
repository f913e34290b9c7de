# SPDX-License-Identifier: Apache-2.0
import numpy as np

image = np.zeros((1, 1, 8, 8), np.float32)
# @BLOCK@
assert probabilities.shape == (1, 10)
