#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool verify: cases made by hand that pass, fail and are skipped.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

pb_floats() { # "DIM..." BITS...
  local dim
  for dim in $1; do pb_int 1 "$dim"; done
  pb_int 2 1
  shift
  f32 "$@" >"$WORK/.test/raw"
  pb_bytes 9 "$WORK/.test/raw"
}
# A Relu of three numbers, and what its output should be.
new_case() { # FOLDER BITS...
  mkdir -p "$1/test_data_set_0"
  onnx_model relu_graph 3 >"$1/model.onnx"
  pb_floats 3 bf800000 00000000 40000000 >"$1/test_data_set_0/input_0.pb" # -1 0 2
  pb_floats 3 "${@:2}" >"$1/test_data_set_0/output_0.pb"
}
new_case cases/test_good 00000000 00000000 40000000
new_case cases/group/test_wrong 00000000 3f800000 40000000
new_case cases/group/test_near 00000000 00000000 40000800
new_case cases/test_shape 00000000
pb_floats '1 3' 00000000 00000000 40000000 >cases/test_shape/test_data_set_0/output_0.pb
new_case cases/test_two_sets 00000000 00000000 40000000
cp -r cases/test_two_sets/test_data_set_0 cases/test_two_sets/test_data_set_1
rm cases/test_two_sets/test_data_set_1/input_0.pb
new_case cases/test_damaged 00000000 00000000 40000000
head -c 20 cases/test_good/model.onnx >cases/test_damaged/model.onnx
new_case cases/test_unknown 00000000 00000000 40000000
unknown_graph() {
  onnx_node Frobnicate activate x a
  onnx_node Grind activate_more a y
  onnx_input x 1 3
  onnx_output y 1 3
}
onnx_model unknown_graph >cases/test_unknown/model.onnx
mkdir -p cases/empty cases/test_no_data
onnx_model relu_graph 3 >cases/test_no_data/model.onnx

show verify cases
show verify -q cases --list-skipped
show short -- verify --json cases/group
show verify cases/test_good cases/test_unknown
show verify --rtol 1e-5 -q cases/group/test_near
show verify --atol 2 -q cases/group/test_wrong

echo "== tolerances of single cases"
echo '{"test_wrong": [0, 2], "test_near": [1e-6, 0]}' >tolerance.json
show verify --tolerance tolerance.json cases/group
echo '{"test_wrong": [0, 0], "test_wrong/y": [0, 2], "test_near/x": [1, 1]}' >tolerance.json
show verify --tolerance tolerance.json --rtol 1e-6 cases/group
echo '{"test_wrong": 2}' >tolerance.json
show verify --tolerance tolerance.json cases/group
echo 'test_wrong' >tolerance.json
show verify --tolerance tolerance.json cases/group

echo "== cases that must pass"
printf '# kept\ntest_good\n\ntest_two # two sets\n' >list.txt
show verify -q --expect-pass list.txt cases/test_good cases/test_two_sets
printf 'test_good\n' >list.txt
show verify -q --expect-pass list.txt cases/test_good cases/test_unknown
printf 'test_good\ntest_unknown\n' >list.txt
show verify -q --expect-pass list.txt cases/test_good cases/test_unknown
show verify -q --expect-pass list.txt --json cases/test_unknown

echo "== wrong usage"
show verify cases/empty
show verify nowhere
show verify cases/test_good/model.onnx
show verify --expect-pass no-list.txt cases
finish
