#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool inspect: needs no device; --plan does.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
kernels_left_out() { sed -E '/^plan/,$d'; }

show inspect digits.onnx
show inspect digits.onnx --dim batch=8
show inspect digits.onnx --shape image=3x1x8x8 -q
show inspect digits.onnx --ops -q
show inspect digits.onnx --json
show json_keys -- inspect digits.onnx --json --ops --plan
show kernels_left_out -- inspect digits.onnx --plan --ops -q
"$CLTOOL" inspect digits.onnx --plan -q | grep -c '^plan'

echo "== Graphviz"
show inspect digits.onnx --dot graph.dot -q
head -n 1 graph.dot
grep -c ' -> ' graph.dot
show inspect digits.onnx --dot graph.dot -q
show inspect digits.onnx --dot graph.dot --force -q

echo "== the rows of a batch"
shows_batch() { sed -n -e '/^rows of a batch/,/^$/p' -e '/^cltool:/p' -e '/^hint:/p' -e '/^exit/p'; }
show shows_batch -- inspect digits.onnx --batch -q
"$CLTOOL" inspect digits.onnx --batch --json | sed -n '/batch_axes/,/^  }/p'
mixing_graph() {
  onnx_node CumSum total 'x first' y
  pb_text 2 mixing
  onnx_input first 7
  onnx_input x 1 rows 4
  onnx_output y 1 rows 4
}
onnx_model mixing_graph >mixing.onnx
show shows_batch -- inspect mixing.onnx --batch -q

echo "== what the model does not have"
show inspect digits.onnx --dim height=8
show inspect digits.onnx --shape photo=1x1x8x8
show inspect digits.onnx --shape image=1x1x9x9
show inspect digits.onnx --shape image=1x1x8
show inspect digits.onnx --shape image=1xonex8x8

echo "== operators that are not supported: all of them, with nodes; exit 4"
mixed_graph() {
  onnx_node Frobnicate first x a
  onnx_node Relu second a b
  onnx_node Frobnicate third b c
  onnx_node Grind fourth c y
  pb_text 2 mixed
  onnx_input x 1 2 channels
  onnx_output y 1 2 channels
}
onnx_model mixed_graph >mixed.onnx
show inspect mixed.onnx
show inspect mixed.onnx --json
show run mixed.onnx --fill zeros

echo "== no inputs, no batch, a scalar"
odd_graph() {
  onnx_node Add sum 'x z' y
  pb_text 2 odd
  onnx_input x 1
  onnx_input z 1 4
  onnx_output y 1 4
}
onnx_model odd_graph >odd.onnx
show inspect odd.onnx

echo "== a free dimension of 1 is too short"
window_graph() {
  onnx_node Conv conv 'x w' y
  pb_text 2 window
  f32 3f800000 3f800000 3f800000 >w
  onnx_floats w '1 1 3' w
  onnx_input x 1 1 1 length
  onnx_output y 1 1 1 shorter
}
onnx_model window_graph >window.onnx
show inspect window.onnx
show inspect window.onnx -q --dim length=2
show inspect window.onnx -q --dim length=5
finish
