#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train on a terminal: the line that shows where it is, until Ctrl-C.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
number='[0-9.e+-]+'
line="epoch [0-9]+  step [0-9]+/[0-9]+  loss $number \([0-9]+\.[0-9] %\)  rate $number  [0-9]+ rows/s  "
line+='[0-9]+(:[0-5][0-9])?:[0-5][0-9] left'
python "$CLG_SOURCE_DIR/tests/cli/progress.py" "$line" "$CLTOOL" train digits.onnx -i heldout.npy \
  --target heldout_labels.npy --loss cross-entropy --epochs 1000000 -o never.onnx
ls never.onnx 2>&1
finish
