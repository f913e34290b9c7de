#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool run: pictures, files, outputs, comparisons.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx labels.txt heldout.npy heldout_probabilities.npy pictures

echo "== a picture"
show short -- run digits.onnx --image image=pictures/00.png --top 3 --labels labels.txt
show short -- run digits.onnx --image pictures/00.png -q
echo "== several pictures are a batch"
show short -- run digits.onnx --image pictures/00.png --image pictures/01.png --image pictures/02.png --top 1 -q
show short -- run digits.onnx --image pictures/00.png --image pictures/01.png --top 2 -q --json

echo "== files in, files out"
show short -- run digits.onnx -i image=heldout.npy -o out --expect probabilities=heldout_probabilities.npy --rtol 1e-4 --atol 1e-5
ls out
show short -- run digits.onnx -i heldout.npy -o out -q
show short -- run digits.onnx -i heldout.npy -o out -q --force --json
show short -- run out/probabilities.npy -q
echo "== not as expected: exit 1"
show short -- run digits.onnx --fill random:1 --dim batch=360 --expect heldout_probabilities.npy -q
show short -- run digits.onnx --fill random:1 --expect heldout_probabilities.npy -q --json

echo "== expected in float64"
f32 3f800000 c0000000 | npy '<f4' '(2,)' >x.npy
printf '\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\0' | npy '<f8' '(2,)' >y.npy # 1 0
onnx_model relu_graph 2 >relu.onnx
show run relu.onnx -i x.npy --expect y.npy -q

echo "== intermediate values"
show short -- run digits.onnx --image pictures/00.png --dump /0/Conv -o dumped -q
ls dumped
show numbers -- run digits.onnx --image pictures/00.png --dump all -q
show run digits.onnx --image pictures/00.png --dump no-such-node -q

echo "== tables"
{
  seq -s, 64 | sed 's/[0-9]*/p&/g'
  seq -s, 0 63
  seq -s, 63 -1 0
} >table.csv
show short -- run digits.onnx -i table.csv -q
printf 'a,b\n1,2\n3\n' >short.csv
show run digits.onnx -i short.csv -q
printf 'a,b\n1,two\n' >words.csv
show run digits.onnx -i words.csv -q

echo "== names of tensors are no paths"
names_graph() {
  onnx_node Relu '' x ../../y
  onnx_node Neg '' x C:z
  onnx_node Abs '' x con
  pb_text 2 names
  onnx_input x 1 2
  onnx_output ../../y 1 2
  onnx_output C:z 1 2
  onnx_output con 1 2
}
onnx_model names_graph >names.onnx
f32 3f800000 c0000000 | npy '<f4' '(2,)' >x.npy
show run names.onnx -i x.npy -o named
ls -A named
show run names.onnx -i x.npy -o named --json -q --force

echo "== element types"
f32 3f800000 | npy '<f4' '(1,)' >f32.npy
printf '\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\300' | npy '<f8' '(2,)' >f64.npy
i64 1 -2 | npy '<i8' '(2,)' >i64.npy
show run names.onnx -i f64.npy
show run names.onnx -i i64.npy -q
show run names.onnx -i i64.npy --cast
show run names.onnx -i f32.npy -q

echo "== fills"
show run names.onnx --fill ones -q
show run names.onnx --fill x=random:7:2:2 -q
show run names.onnx --fill x=random:7:3:2 -q
show run names.onnx --fill x=lots -q
finish
