#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Images of 500 sizes, and files of many formats, beside Pillow.
set -u
: "${CLTOOL:?the path of cltool}" "${WORK:?a folder of the test}"
folder=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
source "$folder/../support/python.bash"
python=$(python_with PIL python3-pil) || exit
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
exec "$python" "$folder/images_pillow.py" "$CLTOOL" same.onnx
