#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh Debian or Ubuntu (README.md) to handwritten digits recognised through OpenCL:
# installs the packages that are missing, builds a release into build/, runs the demo. A second
# start does only the last.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

tools/packages.sh install build run
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release --log-level=WARNING >/dev/null
cmake --build build --target cltool example_digits

echo
build/examples/digits examples/digits/digits.onnx examples/digits/images/*.png
