#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --strict: numbers that the host makes of numbers are refused, exit 4; words are its own.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

encoder_node() { # keys 1 and 2 to what the rest says
  onnx_node_fields LabelEncoder label x y
  onnx_attribute keys_int64s ints 1 2
  onnx_attribute "$@"
  pb_text 7 ai.onnx.ml
}
encoder_graph() { # DTYPE ATTRIBUTE...
  local dtype=$1
  shift
  pb_message 1 encoder_node "$@"
  onnx_input x 7 3
  onnx_output y "$dtype" 3
}
ml_opset() {
  pb_text 1 ai.onnx.ml
  pb_int 2 2
}
encoder() { # FILE DTYPE ATTRIBUTE...
  local file=$1
  shift
  {
    onnx_model encoder_graph "$@"
    pb_message 8 ml_opset
  } >"$file"
}
encoder numbers.onnx 7 values_int64s ints 30 40
encoder words.onnx 8 values_strings strings one two

echo "== numbers of numbers"
show run numbers.onnx --fill x=ones
show run numbers.onnx --fill x=ones --strict
show run numbers.onnx --fill x=ones --strict --json

echo "== words"
show run words.onnx --fill x=ones --strict

finish
