# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess

import clgraph
import numpy as np

subprocess.run(["cltool", "new", "mlp", "1x28x28,16,10", "-o", "model.onnx", "--force"], check=True)
images, labels = np.load("images.npy"), np.load("labels.npy")
# @BLOCK@
assert stats.step == 1
