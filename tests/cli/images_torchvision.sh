#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Presets, --resize short:N and --crop beside torchvision's transforms.
set -u
: "${CLTOOL:?the path of cltool}" "${WORK:?a folder of the test}"
folder=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
source "$folder/../support/python.bash"
python=$(python_with torchvision python3-torchvision) || exit
cd "$WORK" || exit 1
# shellcheck source=/dev/null
(exec 3>&1 && source "$folder/support.bash" >/dev/null && exec >&3 && {
  same_graph() {
    onnx_node Identity same x y
    onnx_input x 1 n 3 h w
    onnx_output y 1 n 3 h w
  }
  onnx_model same_graph >"$WORK/same.onnx"
})
exec "$python" "$folder/images_torchvision.py" "$CLTOOL" same.onnx
