# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts of this folder: $python, a Python with onnxruntime 1.23 or newer and onnx;
# $library, the execution provider; $here, this folder. Without them the test is skipped (exit 77).
#
#   python3 -m venv VENV && VENV/bin/pip install -r tests/ort/requirements.txt
#   CLG_ORT_PYTHON=VENV/bin/python ctest --test-dir build -R '^ort\.'
# shellcheck shell=bash
set -u
# shellcheck disable=SC2034 # for the scripts
here=$CLG_SOURCE_DIR/tests/ort
python=${CLG_ORT_PYTHON:-python3}
library=$CLG_BUILD_DIR/libclgraph_ort.so
export PYTHONDONTWRITEBYTECODE=1
if [ ! -f "$library" ]; then
  echo "skipped: the execution provider is not built (onnxruntime_ep_c_api.h was not found)"
  exit 77
fi
if ! "$python" -c 'import onnx, onnxruntime; onnxruntime.register_execution_provider_library' 2>/dev/null; then
  echo "skipped: $python has no onnx and onnxruntime of 1.23 or newer; CLG_ORT_PYTHON names one that has"
  exit 77
fi
