#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The ends of epochs of cltool train: each is validated and logged once, also where steps do not
# divide the batches, and where a training stopped there.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
labelled=(train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy -q)
training=("${labelled[@]}" --validation 0.5)
# The step and the epoch of each epoch's line, and whether it has a validation.
epochs() { sed -nE 's/.*"epoch":([0-9]+),"step":([0-9]+),"epoch_loss":([^,]*),.*"validation_loss":([^,]*),.*/epoch \1 step \2 \3 \4/p' "$1" | sed -E 's/ [0-9.e-]+ ([^ ]+)$/ loss \1/; s/ [0-9.e-]+$/ validation/'; }
rates() { sed -nE 's/.*"step":([0-9]+),.*"rate":([0-9.e-]+).*/step \1 rate \2/p' "$1"; }

echo "== steps of several batches"
# An epoch has 6 batches: steps of 4 end in each, steps of 8 in the second to the fourth.
for accumulate in 4 8; do
  "$CLTOOL" "${training[@]}" --epochs 5 --accumulate $accumulate -o a.onnx --log $accumulate.jsonl --best best.onnx --force >/dev/null
  epochs $accumulate.jsonl
done
show "${training[@]}" --epochs 5 --accumulate 31 -o none.onnx
ls none.onnx 2>&1

echo "== batches in parts"
"$CLTOOL" new cnn 1x8x8 --conv 8 --dense 32,10 -o start.onnx >/dev/null
parts=(train start.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy -q --batch 100)
memory=$("$CLTOOL" "${parts[@]}" --dry-run --json --batch 10 --accumulate 10 | sed -nE 's/^  "memory_bytes": ([0-9]+),?/\1/p')
"$CLTOOL" "${parts[@]}" --batch 100 --epochs 10 --memory "$memory" --inexact --schedule linear -o b.onnx --log parts.jsonl >/dev/null
# 36 batches of 10 rows are 3.6 steps.
epochs parts.jsonl | cut -d' ' -f1-4
rates parts.jsonl | tail -n 1

echo "== stopped in a validation"
# The rate grows, so that the first epoch is the best. Row 1 is one of the validation.
growing=(--epochs 2 --optimizer sgd --clip-norm 1 --lr 1e-3 --schedule exponential:gamma=3)
cp heldout.npy rows.npy
f32 7fc00000 | dd of=rows.npy bs=1 seek=128 conv=notrunc 2>/dev/null
"$CLTOOL" "${training[@]}" "${growing[@]}" -o whole.onnx --log whole.jsonl --best whole_best.onnx >/dev/null
"$CLTOOL" train digits.onnx -i rows.npy "${training[@]:4}" "${growing[@]}" -o c.onnx --log c.jsonl --best c_best.onnx \
  --checkpoint c.npz --every 1 2>&1
epochs c.jsonl
"$CLTOOL" "${training[@]}" "${growing[@]}" -o c.onnx --log c.jsonl --best c_best.onnx --checkpoint c.npz --every 1 --resume >/dev/null
epochs c.jsonl
cmp whole.onnx c.onnx && cmp whole_best.onnx c_best.onnx && echo "the same files"
cmp -s whole.onnx whole_best.onnx || echo "the last epoch was not the best"

echo "== a checkpoint of an epoch's end"
"$CLTOOL" "${training[@]}" "${growing[@]}" --epochs 1 -o d.onnx --checkpoint d.npz >/dev/null
"$CLTOOL" "${training[@]}" "${growing[@]}" -o d.onnx --checkpoint d.npz --best d_best.onnx --resume --force >/dev/null
cmp whole_best.onnx d_best.onnx && echo "it may be the best"
finish
