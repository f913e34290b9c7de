#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train --head: a new classification layer on a trained model, with the rest kept or trained
# too; each form of the layer; what is refused.
# ctest: timeout 600
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
outputs() { "$CLTOOL" inspect "$1" | sed -n '/^outputs/,/^$/p'; }
weights() { python3 "$CLG_SOURCE_DIR/tests/cli/new.py" "$@"; }

echo "== even and odd digits, with a new head"
python - <<'PYTHON'
import npy

shape, labels = npy.read("heldout_labels.npy")
npy.write("odd.npy", "<i8", shape, [label % 2 for label in labels])
PYTHON
odd=(train digits.onnx -i heldout.npy --target odd.npy --loss cross-entropy --head 2)
show result_figures -- "${odd[@]}" --freeze-rest --epochs 25 --lr 1e-2 -o odd.onnx --log odd.jsonl
losses odd.jsonl |
  awk 'NR == 1 { first = $1 } { last = $1 } END { print last < 0.3 && last < first ? "learned" : "loss " last }'
outputs odd.onnx
python3 - <<'PYTHON'
old, new = open("digits.onnx", "rb").read(), open("odd.onnx", "rb").read()
print("sizes:", "smaller" if len(new) < len(old) else "not smaller")
PYTHON
"$CLTOOL" run digits.onnx -i heldout.npy --dump /10/Flatten -o old -q >/dev/null
"$CLTOOL" run odd.onnx -i heldout.npy --dump /10/Flatten -o new -q >/dev/null
for file in old/*Flatten*; do cmp "$file" "new/$(basename "$file")" && echo "the rest is as before"; done

echo "== the weights are the seed's"
"$CLTOOL" "${odd[@]}" --epochs 1 --freeze '11.*' --seed 3 --init kaiming -o fresh.onnx -q >/dev/null
weights fresh.onnx kaiming 3 0:2,512
"$CLTOOL" "${odd[@]}" --epochs 1 --freeze '11.*' -o fresh.onnx --force -q >/dev/null
weights fresh.onnx pytorch 0 0:2,512

echo "== MatMul and Add, and Conv with pooling after it"
matmul_graph() {
  onnx_node MatMul product 'x w' h
  onnx_node Add sum 'b h' z
  onnx_node Softmax soft z y
  pb_text 2 matmul
  f32 3f800000 3f000000 3e800000 3f800000 3f000000 3e800000 >w
  f32 3f800000 3f000000 3e800000 >b
  onnx_floats w '2 3' w
  onnx_floats b '1 3' b
  onnx_input x 1 N 2
  onnx_output y 1 N 3
}
conv_graph() {
  onnx_node Conv conv 'x w' h
  onnx_node GlobalAveragePool pool h p
  onnx_node Flatten flat p y
  pb_text 2 conv
  f32 3f800000 3f000000 3e800000 >w
  onnx_floats w '3 1 1 1' w
  onnx_input x 1 N 1 2 2
  onnx_output y 1 N 3
}
square_graph() {
  onnx_node MatMul product 'x w' y
  pb_text 2 square
  f32 3f800000 3f000000 3e800000 3f800000 >w
  onnx_floats w '2 2' w
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
onnx_model matmul_graph >matmul.onnx
onnx_model conv_graph >conv.onnx
onnx_model square_graph >square.onnx
f32 3f800000 bf800000 3f000000 00000000 3e800000 bf400000 3f800000 3f800000 | npy '<f4' '(4, 2)' >x.npy
f32 3f800000 bf800000 3f000000 00000000 3e800000 bf400000 3f800000 3f800000 | npy '<f4' '(2, 1, 2, 2)' >image.npy
i64 4 0 1 3 | npy '<i8' '(4,)' >four.npy
i64 4 0 | npy '<i8' '(2,)' >two.npy
i64 0 1 2 0 | npy '<i8' '(4,)' >three.npy
show result_figures -- train matmul.onnx -i x.npy --target four.npy --loss cross-entropy --head 5 --epochs 1 -o matmul5.onnx -q
outputs matmul5.onnx
show result_figures -- train matmul.onnx -i x.npy --target three.npy --loss cross-entropy --head 3 --epochs 1 -o matmul3.onnx -q
outputs matmul3.onnx
show result_figures -- train conv.onnx -i image.npy --target two.npy --loss cross-entropy --head 6 --epochs 1 -o conv6.onnx -q
outputs conv6.onnx
show result_figures -- train square.onnx -i x.npy --target four.npy --loss cross-entropy --head 5 --epochs 1 -o square5.onnx -q
outputs square5.onnx
"$CLTOOL" new mlp 4,4,4 -o equal.onnx >/dev/null
f32 3f800000 bf800000 3f000000 00000000 3e800000 bf400000 3f800000 3f800000 | npy '<f4' '(2, 4)' >wide.npy
show result_figures -- train equal.onnx -i wide.npy --target two.npy --loss cross-entropy --head 7 --epochs 1 -o equal7.onnx -q
outputs equal7.onnx

# The mean over an axis of length, over the pixels, and a Softmax of four axes.
tokens_graph() {
  onnx_node MatMul product 'x w' h
  onnx_node Add sum 'h b' z
  onnx_node_with ReduceMean mean z m axes ints 1
  onnx_node Squeeze squeeze 'm axes' y
  small_weights tokens '2 3' 3
  i64 1 >axes
  onnx_int64s axes 1 axes
  onnx_input x 1 N 2 2
  onnx_output y 1 N c
}
pixels_graph() {
  onnx_node Conv conv 'x w' h
  onnx_node Add sum 'b h' z
  onnx_node_with ReduceMean mean z p axes ints 2 3
  onnx_node_with Softmax soft p s axis i 1
  onnx_node Squeeze squeeze 's axes' y
  small_weights pixels '3 1 1 1' '3 1 1'
  i64 2 3 >axes
  onnx_int64s axes 2 axes
  onnx_input x 1 N 1 2 2
  onnx_output y 1 N c
}
small_weights() { # NAME "DIM of w..." "DIM of b..."
  pb_text 2 "$1"
  f32 3f800000 3f000000 3e800000 3f800000 3f000000 3e800000 | head -c "$((4 * ${2// /*}))" >w
  onnx_floats w "$2" w
  [ -z "$3" ] || {
    f32 3f800000 3f000000 3e800000 >b
    onnx_floats b "$3" b
  }
}
# Which axis the classes are is not known from the size of a square matrix alone.
unknown_graph() {
  onnx_node Gemm product 'x w' y
  pb_text 2 unknown
  f32 3f800000 3f000000 3e800000 3f800000 >w
  onnx_floats w '2 2' w
  onnx_input x 1 N k
  onnx_output y 1 N c
}
f32 3f800000 bf800000 3f000000 00000000 3e800000 bf400000 3f800000 3f800000 | npy '<f4' '(2, 2, 2)' >text.npy
for name in tokens:text pixels:image unknown:wide2; do
  cp x.npy wide2.npy
  onnx_model ${name%:*}_graph >${name%:*}.onnx
  targets=two.npy && [ ${name#*:} != wide2 ] || targets=four.npy
  show result_figures -- train ${name%:*}.onnx -i ${name#*:}.npy --target $targets --loss cross-entropy --head 5 --epochs 1 -o ${name%:*}5.onnx -q
  outputs ${name%:*}5.onnx
done

echo "== refused: the classes are not along axis 1 of the output, or other axes are mixed with them"
places_graph() { # a class and place of each column
  onnx_node Conv conv 'x w' h
  onnx_node Flatten flat h y
  small_weights places '3 1 1 1' ''
  onnx_input x 1 N 1 2 2
  onnx_output y 1 N c
}
last_graph() {
  onnx_node MatMul product 'x w' y
  small_weights last '2 3' ''
  onnx_input x 1 N 2 2
  onnx_output y 1 N 2 c
}
rows_graph() { # one row for each place
  onnx_node MatMul product 'x w' h
  onnx_node_with Flatten flat h y axis i 2
  small_weights rows '2 3' ''
  onnx_input x 1 N 2 2
  onnx_output y 1 n c
}
averaged_graph() {
  onnx_node MatMul product 'x w' h
  onnx_node_with ReduceMean mean h y axes ints 1
  small_weights averaged '2 3' ''
  onnx_input x 1 N 2
  onnx_output y 1 N 1
}
batch_graph() {
  onnx_node MatMul product 'x w' h
  onnx_node_with Softmax soft h y axis i 0
  small_weights batch '2 3' ''
  onnx_input x 1 N 2
  onnx_output y 1 N 3
}
single_graph() { # the last axis is a single pixel
  onnx_node Conv conv 'x w' h
  onnx_node GlobalAveragePool pool h p
  onnx_node LogSoftmax soft p y
  small_weights single '3 1 1 1' ''
  onnx_input x 1 N 1 2 2
  onnx_output y 1 N 3 1 1
}
sideways_graph() { # a bias of columns
  onnx_node Conv conv 'x w' h
  onnx_node Add sum 'h b' z
  onnx_node GlobalAveragePool pool z y
  small_weights sideways '3 1 1 1' '3'
  onnx_input x 1 N 1 3 3
  onnx_output y 1 N 3 1 1
}
head -c $((128 + 16)) x.npy | tail -c 16 | npy '<f4' '(2, 2)' >x2.npy
for name in places last rows averaged batch single sideways; do
  onnx_model ${name}_graph >$name.onnx
  data=image && [ $name != last ] && [ $name != rows ] || data=text
  [ $name != averaged ] && [ $name != batch ] || data=x2
  for classes in 3 5; do
    show train $name.onnx -i $data.npy --target two.npy --loss nll --head $classes -o out_$name$classes.onnx -q
  done
done

echo "== refused"
none_graph() {
  onnx_node Tanh tanh x y
  pb_text 2 none
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
product_graph() {
  onnx_node MatMul product 'x x' h
  onnx_node Relu relu h y
  pb_text 2 product
  onnx_input x 1 2 2
  onnx_output y 1 2 2
}
relu_only_graph() {
  onnx_node Relu relu x y
  pb_text 2 relu
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
tied_graph() {
  onnx_node MatMul one 'x w' h
  onnx_node MatMul two 'h w' y
  pb_text 2 tied
  f32 3f800000 3f000000 3e800000 3f800000 >w
  onnx_floats w '2 2' w
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
for name in none product relu_only tied; do
  onnx_model ${name}_graph >$name.onnx
  show train $name.onnx -i x.npy --target four.npy --loss cross-entropy --head 5 -o a.onnx -q
done
show "${odd[@]}" --freeze-rest --train '*' -o a.onnx -q
show train digits.onnx -i heldout.npy --target odd.npy --loss cross-entropy --freeze-rest -o a.onnx -q
show train digits.onnx -i heldout.npy --target odd.npy --loss cross-entropy --init xavier -o a.onnx -q
show "${odd[@]}" --init zeros -o a.onnx -q
show "${odd[@]}" --head 0 -o a.onnx -q
ls a.onnx out_*.onnx 2>&1
finish
