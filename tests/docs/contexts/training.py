# SPDX-License-Identifier: Apache-2.0
import clgraph
import numpy as np

images, labels = np.load("images.npy"), np.load("labels.npy")
batches = [(images[:32], labels[:32]), (images[32:64], labels[32:64])]
# @BLOCK@
assert stats.step == 2 and np.isfinite(stats.loss)
