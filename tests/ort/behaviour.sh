#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Options, changing shapes, groups, subgraphs, threads, fork and errors: see behaviour.py.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
"$python" "$here/behaviour.py" "$library" "$CLG_SOURCE_DIR/examples/digits/digits.onnx"
