#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tensors in memory of the device: the C programs of memory.c and memory_failures.c on the
# libonnxruntime of the Python package.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
find_runtime
"$python" "$here/memory_models.py" "$WORK" || exit 1
export CLG_ORT_MEMORY=device
"$CLG_BUILD_DIR/tests/ort/memory" "$runtime" "$library" "$WORK" &&
  "$CLG_BUILD_DIR/tests/ort/memory_failures" "$runtime" "$library" "$WORK" \
    "$CLG_BUILD_DIR/tests/layers/opencl_lost.so"
