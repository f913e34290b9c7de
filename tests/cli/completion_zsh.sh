#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What zsh completes on a terminal.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
command -v zsh >/dev/null || exit 77
mkdir zsh folder
touch a.onnx b.onnx x.npy
"$CLTOOL" completion zsh >zsh/_cltool
zsh -n zsh/_cltool || echo "the script is not valid"
python "$CLG_SOURCE_DIR/tests/cli/completion_zsh.py" "$WORK/zsh" "$(dirname "$CLTOOL")" \
  "cltool prof" "cltool run --prec" "cltool run --precision fp1" "cltool run --precision=a" \
  "cltool run a" "cltool run -i name=x" "cltool run a.onnx -o f" "cltool run -d nvi" \
  "cltool run --fill name=ran" "cltool train --optimizer rms" "cltool cache wa" \
  "cltool cache warm b" "cltool man sel" "cltool verify f" "cltool merge x" "cltool new ml" \
  "cltool completion f" "cltool devices --mea"
finish
