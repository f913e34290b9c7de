#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What fish completes.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
command -v fish >/dev/null || exit 77
export HOME=$WORK/.test
mkdir folder
touch a.onnx b.onnx x.npy
"$CLTOOL" completion fish >.test/script
fish -n .test/script || echo "the script is not valid"
PATH=$(dirname "$CLTOOL"):$PATH
for line in "cltool pr" "cltool --v" "cltool run --prec" "cltool run --precision f" "cltool run a" \
  "cltool run -i name=x" "cltool run a.onnx -o f" "cltool run -d nv" "cltool train --loss m" \
  "cltool cache wa" "cltool man sel" "cltool verify fo" "cltool new m" "cltool completion f" \
  "cltool devices --mea"; do
  printf '%s<TAB>\n' "$line"
  fish --no-config -c "source .test/script; complete -C '$line'" | sed 's/\t.*//; s/=$//; s/^/  /'
done
finish
