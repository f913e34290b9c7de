# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts of this folder: $python, a Python with the packages of requirements.txt;
# $library, the execution provider; $here, this folder. The Python is that of a virtual environment
# in the build folder, made by the first script and kept; CLG_ORT_PYTHON names another one. Without
# the provider, or without packages from PyPI, the test is skipped (exit 77).
# shellcheck shell=bash
set -u
here=$CLG_SOURCE_DIR/tests/ort
library=$CLG_BUILD_DIR/libclgraph_ort.so
export PYTHONDONTWRITEBYTECODE=1

skip() {
  echo "skipped: $1"
  exit 77
}

# Makes $CLG_BUILD_DIR/ort-venv unless it is complete; one script at a time.
make_venv() {
  local venv=$CLG_BUILD_DIR/ort-venv
  exec 9>"$venv.lock"
  flock 9
  if ! cmp -s "$here/requirements.txt" "$venv/complete"; then
    rm -rf "$venv"
    "${PYTHON:-/usr/bin/python3}" -m venv "$venv" || skip 'no virtual environment (python3-venv)'
    "$venv/bin/pip" install -q -r "$here/requirements.txt" || skip 'packages of PyPI are missing'
    cp "$here/requirements.txt" "$venv/complete"
  fi
  exec 9>&-
}

# Sets $runtime to the libonnxruntime of the package, for C programs.
find_runtime() {
  local folder
  folder=$("$python" -c 'import onnxruntime, os; print(os.path.dirname(onnxruntime.__file__))')
  runtime=$(find "$folder/capi" -name 'libonnxruntime.so*' | head -n 1)
  [ -n "$runtime" ] || skip "$folder has no libonnxruntime.so"
}

[ -f "$library" ] || skip 'the provider is not built: onnxruntime_ep_c_api.h was not found'
if [ -z "${CLG_ORT_PYTHON:-}" ]; then make_venv; fi
runtime=
python=${CLG_ORT_PYTHON:-$CLG_BUILD_DIR/ort-venv/bin/python}
"$python" -c 'import onnx, onnxruntime; onnxruntime.register_execution_provider_library' ||
  skip "$python has no onnx and onnxruntime of 1.23 or newer"
