#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ONNX's own checker accepts what clg_model_save makes of ONNX's cases, and its reader finds the same
# weights and attributes. Skipped without Python's onnx: CLG_PYTHON names a Python that has it.
# shellcheck source=tests/conformance/cases.bash
. "$CLG_SOURCE_DIR/tests/conformance/cases.bash"
python=${CLG_PYTHON:-python3}
if ! "$python" -c 'import onnx' 2>/dev/null; then
  echo "skipped: $python has no onnx (python3-onnx, or pip install onnx)"
  exit 77
fi
saved=$CLG_BUILD_DIR/tests/api/test_saved_models
CLG_ONNX_TESTDATA=$data CLG_SAVED_MODELS=$work "$saved" >"$work/out" 2>&1 || {
  cat "$work/out"
  exit 1
}
"$python" "$CLG_SOURCE_DIR/tests/conformance/saved_models.py" "$work" "$data"
