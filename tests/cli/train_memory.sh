#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train --memory: batches in parts give the same training up to rounding; what is refused.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits heldout.npy heldout_labels.npy
"$CLTOOL" new cnn 1x8x8 --conv 8 --dense 32,10 -o start.onnx >/dev/null
training=(train start.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy)
need() { "$CLTOOL" "${training[@]}" --dry-run -q --json "$@" | json_numbers memory_bytes; }

whole=$(need --batch 120)
parts=$(need --batch 40 --accumulate 3)
[ "$parts" -lt "$whole" ] && echo "parts need less"

echo "== the same training"
"$CLTOOL" "${training[@]}" --batch 120 --epochs 6 -o whole.onnx --log whole.jsonl -q >/dev/null
"$CLTOOL" "${training[@]}" --batch 120 --epochs 6 --memory "$parts" -o parts.onnx --log parts.jsonl 2>&1 |
  grep parts, | size_figures
paste <(losses whole.jsonl) <(losses parts.jsonl) |
  awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) bad = 1; n++ } END { print n, bad ? "differ" : "epochs with the same loss" }'
wc -l <whole.jsonl
wc -l <parts.jsonl
[ "$(need --batch 120 --memory "$parts")" -le "$parts" ] && echo "it fits"
"$CLTOOL" "${training[@]}" --batch 120 --epochs 6 --memory 1G -o fits.onnx -q >/dev/null
cmp whole.onnx fits.onnx && echo "what fits is not divided"

"$CLTOOL" "${training[@]}" --batch 100 --epochs 1 --memory "$parts" --inexact -o inexact.onnx 2>&1 | grep -c 'parts, in'

echo "== checkpoints of another memory"
# A training that goes on without --memory, and again with it; three batches of 120 rows are an epoch.
going=("${training[@]}" --batch 120 -o going.onnx --checkpoint going.npz --resume --log going.jsonl --force -q)
"$CLTOOL" "${going[@]}" --epochs 2 --memory "$parts" >/dev/null
"$CLTOOL" "${going[@]}" --epochs 4 >/dev/null
"$CLTOOL" "${going[@]}" --epochs 6 --memory "$parts" --inexact >/dev/null
paste <(losses whole.jsonl) <(losses going.jsonl) |
  awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) bad = 1; n++ } END { print n, bad ? "differ" : "epochs with the same loss" }'
inexact=("${training[@]}" --batch 100 --epochs 1 -o inexact.onnx --checkpoint inexact.npz --resume --force -q)
"$CLTOOL" "${inexact[@]}" --memory "$parts" --inexact >/dev/null
"$CLTOOL" "${inexact[@]}" 2>&1 | sed -E "s/accumulate [0-9]+', the/accumulate N', the/"

echo "== the form of training"
"$CLTOOL" new cnn 1x8x8 --conv 8 --dense 32,10 --dropout 0.3 --batchnorm -o forms.onnx >/dev/null
forms=(train forms.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --batch 120 --memory 1k -o a.onnx -q)
show size_figures -- "${forms[@]}"
show "${forms[@]}" --dropout on
show "${forms[@]}" --batchnorm training
show size_figures -- "${forms[@]}" --dropout off --batchnorm fixed
form_graph() {
  onnx_node MatMul product 'x w' h
  onnx_node BatchNormalization norm 'h s b m v' 'n p q'
  onnx_node Dropout drop 'n ratio trains' y
  pb_text 2 forms
  f32 3f800000 3f000000 3e800000 3f800000 >w
  onnx_floats w '2 2' w
  f32 3f800000 3f800000 >ones
  f32 00000000 00000000 >zeros
  onnx_floats s 2 ones
  onnx_floats b 2 zeros
  onnx_floats m 2 zeros
  onnx_floats v 2 ones
  f32 3f000000 >half
  onnx_floats ratio '' half
  pb_message 5 onnx_true trains
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
onnx_true() {
  pb_int 2 9
  pb_text 8 "$1"
  printf '\1' >true
  pb_bytes 9 true
}
onnx_model form_graph >training.onnx
f32 3f800000 bf800000 3f000000 00000000 3e800000 bf400000 3f800000 3f800000 | npy '<f4' '(4, 2)' >x.npy
i64 1 0 1 0 | npy '<i8' '(4,)' >t.npy
forms=(train training.onnx -i x.npy --target t.npy --loss cross-entropy --batch 4 --memory 1 -o a.onnx -q)
show "${forms[@]}" --batchnorm fixed
show "${forms[@]}" --dropout off
show size_figures -- "${forms[@]}" --dropout off --batchnorm fixed

echo "== refused"
show size_figures -- "${training[@]}" --batch 120 --memory 1k -o a.onnx -q
show size_figures -- "${training[@]}" --batch 100 --memory 1k -o a.onnx -q
show "${training[@]}" --batch 100 --memory 1k --inexact -o a.onnx -q 2>&1 | size_figures
show size_figures -- train start.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy:ignore_index=3 --batch 120 \
  --memory 1k -o a.onnx -q
show "${training[@]}" --memory many -o a.onnx -q
mixed_graph() {
  onnx_node ReduceMean mean x m
  onnx_node Sub centred 'x m' c
  onnx_node MatMul product 'c w' y
  pb_text 2 mixed
  f32 3f800000 3f000000 3e800000 3f800000 >w
  onnx_floats w '2 2' w
  onnx_input x 1 N 2
  onnx_output y 1 N 2
}
onnx_model mixed_graph >mixed.onnx
show train mixed.onnx -i x.npy --target t.npy --loss cross-entropy --batch 4 --memory 1 -o a.onnx -q
ls a.onnx 2>&1
finish
