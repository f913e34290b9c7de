#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Single MatMulNBits nodes beside ONNX Runtime's: see nbits.py.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
PYTHONPATH=$CLG_SOURCE_DIR/python CLG_LIBRARY=$CLG_BUILD_DIR/libclgraph.so "$python" "$here/nbits.py"
