#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train --augment: the same bits with and without a break, no change of rows for validation,
# and what is refused.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
labelled=(train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --validation 0.2 -q)
validations() { json_numbers validation_loss "$1"; }

echo "== the same bits"
"$CLTOOL" "${labelled[@]}" --epochs 4 --augment flip,crop:2,shift:1 -o whole.onnx >/dev/null
"$CLTOOL" "${labelled[@]}" --epochs 4 --augment flip,crop:2,shift:1 -o again.onnx >/dev/null
cmp whole.onnx again.onnx && echo "the same file"
"$CLTOOL" "${labelled[@]}" --epochs 2 --augment flip,crop:2,shift:1 -o two.onnx --checkpoint two.npz >/dev/null
"$CLTOOL" "${labelled[@]}" --epochs 4 --augment flip,crop:2,shift:1 -o resumed.onnx --checkpoint two.npz --resume >/dev/null
cmp whole.onnx resumed.onnx && echo "the same file"
for words in flip crop:2 shift:1 shift:1,flip,crop:2; do
  "$CLTOOL" "${labelled[@]}" --epochs 4 --augment $words -o other.onnx --force >/dev/null
  cmp -s whole.onnx other.onnx || echo "$words: another file"
done

echo "== validation rows are not changed: with a rate of 0, their loss is that without augmentation"
"$CLTOOL" "${labelled[@]}" --epochs 1 --optimizer sgd --lr 1e-30 -o plain.onnx --log plain.jsonl >/dev/null
"$CLTOOL" "${labelled[@]}" --epochs 1 --optimizer sgd --lr 1e-30 --augment crop:3 -o changed.onnx --log changed.jsonl >/dev/null
cmp <(validations plain.jsonl) <(validations changed.jsonl) && [ -n "$(validations plain.jsonl)" ] && echo "the same loss"
cmp -s <(head -n 1 plain.jsonl) <(head -n 1 changed.jsonl) || echo "another loss of rows to train with"

echo "== refused"
refused() { show "${labelled[@]}" -o a.onnx --augment "$@"; }
refused rotate:3
refused flip:3
refused crop
refused shift:0
refused crop:x
refused crop:8
refused flip,flip,flip,flip,flip,flip,flip,flip,flip
refused ''
table_graph() {
  onnx_node Mul scale 'x w' y
  printf '\0\0\200\77\0\0\0\100' >w
  onnx_floats w 2 w
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
onnx_model table_graph >table.onnx
printf '1,2\n3,4\n' >table.csv
show train table.onnx -i table.csv --target table.csv --loss mse -o a.onnx --augment flip -q
same_graph() {
  onnx_node Mul scale 'x w' y
  printf '\0\0\200\77' >w
  onnx_floats w '' w
  onnx_input x 1 N 1 2 2
  onnx_output y 1 N 1 2 2
}
onnx_model same_graph >same.onnx
f32 00000000 3f800000 00000000 3f800000 | npy '<f4' '(1, 1, 2, 2)' >image.npy
show train same.onnx -i image.npy --target image.npy --loss mse -o a.onnx --augment flip -q
ls a.onnx 2>&1
finish
