#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ONNX's own checker accepts what clg_model_save makes of ONNX's cases, and its reader finds the same
# weights and attributes. Skipped without Python's onnx: CLG_PYTHON names a Python that has it.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
# shellcheck source=/dev/null
source "$CLG_SOURCE_DIR/tests/support/python.bash"
# Debian's libonnx-testdata alone has a folder `onnx` for Python.
python=$(python_with onnx.numpy_helper python3-onnx) || exit 77
saved=$CLG_BUILD_DIR/tests/api/test_saved_models
CLG_ONNX_TESTDATA=$data CLG_SAVED_MODELS=$work "$saved" >"$work/out" 2>&1 || {
  cat "$work/out"
  exit 1
}
"$python" "$CLG_SOURCE_DIR/tests/conformance/saved_models.py" "$work" "$data"
