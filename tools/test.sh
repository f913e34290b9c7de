#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the tests need, builds a release with tests into build/, runs them and ends with
# ctest's summary:
#
#   tools/test.sh              the quick tests, in about a minute
#   tools/test.sh --all        all of them, in about an hour
#   tools/test.sh -L unit      those of all that ctest's arguments choose; they may follow --all
#
# CLG_WERROR=ON in the environment makes warnings errors.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

if [ $# -eq 0 ]; then
  packages=(build run quick)
  target=tests_quick
  tests=(-L '^quick$')
else
  packages=(build run test onnxruntime python)
  target=all
  [ "$1" != --all ] || shift
  tests=("$@")
fi

tools/packages.sh install "${packages[@]}"
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLG_BUILD_TESTS=ON \
  -DCLG_WERROR="${CLG_WERROR:-OFF}" --log-level=WARNING >/dev/null
cmake --build build --target "$target"
exec ctest --test-dir build --parallel 2 --output-on-failure --no-tests=error "${tests[@]}"
