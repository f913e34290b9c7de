#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Logits of clgraph's generator beside ONNX Runtime's: see generator.py.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
"$python" -c 'import onnx_ir' || skip "$python has no onnx-ir"
PYTHONPATH=$CLG_SOURCE_DIR/python CLG_LIBRARY=$CLG_BUILD_DIR/libclgraph.so "$python" "$here/generator.py"
