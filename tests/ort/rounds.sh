#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The C program of rounds.c on the libonnxruntime of the Python package: 25 rounds; CLG_ORT_ROUNDS
# says another number.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
find_runtime
"$CLG_BUILD_DIR/tests/ort/rounds" "$runtime" "$library" "$CLG_SOURCE_DIR/examples/digits/digits.onnx" \
  "${CLG_ORT_ROUNDS:-25}"
