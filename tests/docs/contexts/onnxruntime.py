# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import numpy as np
import onnxruntime

shutil.copy("models/linear.onnx", "model.onnx")
register = onnxruntime.register_execution_provider_library
onnxruntime.register_execution_provider_library = lambda name, path: register(
    name, path.replace("/usr/local/lib", os.environ["CLG_BUILD_DIR"])
)
# @BLOCK@
assert session.get_providers()[0] == "ClgraphExecutionProvider"
assert session.run(None, {"x": np.load("x.npy")})[0].shape == (8, 2)
