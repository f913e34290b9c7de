#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Without OpenCL, registering fails with the library's message, and ONNX Runtime goes on.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
OCL_ICD_VENDORS=$WORK/no-drivers "$python" - "$library" "$CLG_SOURCE_DIR/examples/digits/digits.onnx" <<'PYTHON'
import sys

import onnxruntime

try:
    onnxruntime.register_execution_provider_library("clgraph", sys.argv[1])
    sys.exit("registering did not fail")
except Exception as error:
    print(error)
    assert "clgraph: " in str(error) and "CLG_ERROR_NO_OPENCL" in str(error), error
assert not [d for d in onnxruntime.get_ep_devices() if d.ep_name == "ClgraphExecutionProvider"]
onnxruntime.InferenceSession(sys.argv[2], providers=["CPUExecutionProvider"])
PYTHON
