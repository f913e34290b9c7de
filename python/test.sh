#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the Python package in a virtual environment:
#
#   python/test.sh                  # builds the wheel, installs it alone, and tests that
#   python/test.sh --wheel FILE     # tests a wheel
#   python/test.sh --build FOLDER   # tests the sources with the library of a build folder
#
# Further arguments go to pytest. PYTHON is the interpreter, default python3. Exit code 77: no
# virtual environment or no packages from PyPI; also if all passed without those of the server, from
# Python 3.10 on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
wheel=
build=
case ${1:-} in
  --wheel) wheel=$(realpath "$2") && shift 2 ;;
  --build) build=$(realpath "$2") && shift 2 ;;
esac

skip() {
  echo "python/test.sh: $1: the tests of the Python package were not run"
  exit 77
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$build" ] && [ -z "$wheel" ]; then
  wheel=$("$here/build_wheel.sh" "$work/dist" | tail -n 1)
fi
# Kept between runs of one build folder.
venv=${build:-$work}/python-venv
# What the tests need, as pyproject.toml lists it. One call resolves all of it, without byte code,
# which takes longer than the rest: programs write that of the modules they import.
packages=(numpy ml_dtypes onnx pyopencl pytest scikit-learn skl2onnx tokenizers)
serving=("kserve>=0.21,<0.22" "tritonclient[http,grpc]")
install=("$venv/bin/pip" install -q --no-compile)
untested=
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || serving=() # KServe's minimum
if [ ! -f "$venv/complete-serve" ]; then
  [ -f "$venv/complete" ] || {
    rm -rf "$venv"
    "$python" -m venv "$venv" || skip "$python cannot make a virtual environment (python3-venv)"
  }
  if "${install[@]}" "${packages[@]}" "${serving[@]}"; then
    touch "$venv/complete" "$venv/complete-serve"
  else
    untested=yes
    [ -f "$venv/complete" ] || "${install[@]}" "${packages[@]}" || skip "PyPI has no ${packages[*]}"
    touch "$venv/complete"
  fi
fi
cd "$work" # no package beside the tests
if [ -n "$build" ]; then
  export PYTHONPATH=$here CLG_LIBRARY=$build/libclgraph.so
else
  unset PYTHONPATH CLG_LIBRARY
  "$venv/bin/pip" install -q --force-reinstall --no-deps "$wheel"
  "$venv/bin/cltool" --version
fi
"$venv/bin/python" -m pytest -q -p no:cacheprovider "$here/tests" "$@"
if [ -n "$untested" ]; then
  echo "python/test.sh: PyPI has no ${serving[*]}: the tests of the server were not run"
  exit 77
fi
