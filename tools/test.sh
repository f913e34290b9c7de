#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the tests need, builds a release with tests into build/, runs all of them and ends
# with ctest's summary. Arguments go to ctest: tools/test.sh -L unit. CLG_WERROR=ON in the
# environment makes warnings errors.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

tools/packages.sh install build run test onnxruntime python
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLG_BUILD_TESTS=ON \
  -DCLG_WERROR="${CLG_WERROR:-OFF}" --log-level=WARNING >/dev/null
cmake --build build
exec ctest --test-dir build --parallel 2 --output-on-failure --no-tests=error "$@"
