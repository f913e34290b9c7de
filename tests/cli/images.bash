# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Compares how cltool reads images with a Python library, in $WORK. The script of that name in this
# folder gets the path of cltool and of a model whose output is its image.
: "${CLTOOL:?the path of cltool}" "${WORK:?a folder of the test}"
folder=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
source "$folder/../support/python.bash"

# Does not return; skipped without the module.
compare_images() { # MODULE PACKAGE SCRIPT
  local python
  python=$(python_with "$1" "$2") || exit
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
  exec "$python" "$folder/$3" "$CLTOOL" same.onnx
}
