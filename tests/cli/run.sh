#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool run: images, files, outputs, comparisons.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx labels.txt heldout.npy heldout_probabilities.npy images

echo "== an image"
show short -- run digits.onnx --image image=images/00.png --top 3 --labels labels.txt
show short -- run digits.onnx --image images/00.png -q
echo "== several images are a batch"
show short -- run digits.onnx --image images/00.png --image images/01.png --image images/02.png --top 1 -q
show short -- run digits.onnx --image images/00.png --image images/01.png --top 2 -q --json

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
show short -- run digits.onnx --image images/00.png --dump /0/Conv -o dumped -q
ls dumped
show numbers -- run digits.onnx --image images/00.png --dump all -q
show run digits.onnx --image images/00.png --dump no-such-node -q

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

echo "== names of tensors are not paths"
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
echo "== maps are tables with names"
classes_fields() {
  onnx_node_fields ZipMap zip p who
  pb_text 7 ai.onnx.ml
  onnx_attribute classlabels_strings strings owl wren
}
classes_graph() {
  onnx_node Softmax softmax x p
  pb_message 1 classes_fields
  onnx_node_with Cast cast x words to i 8
  pb_text 2 classes
  onnx_input x 1 N 2
  pb_message 12 pb_text 1 who
  onnx_output words 8 N 2
}
ml_opset() {
  pb_text 1 ai.onnx.ml
  pb_int 2 1
}
{
  onnx_model classes_graph
  pb_message 8 ml_opset
} >classes.onnx
f32 3f800000 3f800000 c0000000 7f800000 | npy '<f4' '(2, 2)' >x.npy
f32 3f800000 3f800000 40400000 40400000 | npy '<f4' '(2, 2)' >even.npy
f32 3f000000 3f000000 3f000000 3f000000 | npy '<f4' '(2, 2)' >half.npy
show inspect classes.onnx
show run classes.onnx -i even.npy -o classes --expect who=half.npy -q
ls classes
cat classes/who.keys.json
echo
show run classes.onnx -i even.npy -o classes -q
show run classes.onnx -i even.npy --expect who=even.npy -q
show run classes.onnx -i x.npy --top 1 -q
show run classes.onnx -i even.npy --json -q
echo "== integers that differ by one beyond 2^53"
wide_graph() {
  onnx_node Identity same x y
  onnx_input x 7 2
  onnx_output y 7 2
}
onnx_model wide_graph >wide.onnx
f32 00000001 00200000 ffffffff 7fffffff | npy '<i8' '(2,)' >wide.npy
f32 00000001 00200000 fffffffe 7fffffff | npy '<i8' '(2,)' >less.npy
show run wide.onnx -i wide.npy --expect wide.npy --rtol 0 --atol 0 -q
show run wide.onnx -i wide.npy --expect less.npy --rtol 0 --atol 0 -q
show run wide.onnx -i wide.npy --expect less.npy --rtol 0 --atol 1 -q
echo "== -o is a folder here"
for output in y=out.npy out.npy out.pb x.npy; do show run digits.onnx -i table.csv -o $output -q; done
[ -e y=out.npy ] || [ -e out.npy ] || echo "no folders of such names"
mkdir folder.npy
show short -- run digits.onnx -i table.csv -q -o folder.npy
ls folder.npy
echo "== files that are read, not mapped"
show short -- run digits.onnx -i table.csv -q --read-files
finish
