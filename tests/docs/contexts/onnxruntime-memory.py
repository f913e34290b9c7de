# SPDX-License-Identifier: Apache-2.0
import os

os.environ["CLG_ORT_MEMORY"] = "device"
import numpy as np
import onnxruntime

library = os.path.join(os.environ["CLG_BUILD_DIR"], "libclgraph_ort.so")
onnxruntime.register_execution_provider_library("clgraph", library)
devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "ClgraphExecutionProvider"]
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(devices[:1], {})
session = onnxruntime.InferenceSession("models/linear.onnx", options)
image = np.load("x.npy")
# @BLOCK@
assert y.device_name() != "cpu"
expected = onnxruntime.InferenceSession("models/linear.onnx", providers=["CPUExecutionProvider"])
assert np.allclose(y.numpy(), expected.run(None, {"x": image})[0], atol=1e-5)
