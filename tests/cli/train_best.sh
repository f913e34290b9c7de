#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train --best: which model is the best so far of a training that begins or goes on.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
training=(train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --validation 0.2 -q)
# A model that no epoch of what follows is better than.
worse=(--optimizer sgd --lr 1e-2 --clip-norm 1)
"$CLTOOL" "${training[@]}" --epochs 5 -o good.onnx >/dev/null

echo "== a file of another training"
cp good.onnx stale.onnx
show "${training[@]}" --best stale.onnx -o a.onnx
show "${training[@]}" --best stale.onnx -o a.onnx --resume --checkpoint none.npz
cmp good.onnx stale.onnx && echo "it is as it was"
"$CLTOOL" "${training[@]}" "${worse[@]}" --epochs 1 --best stale.onnx -o a.onnx --resume --checkpoint a.npz --force >/dev/null
cmp a.onnx stale.onnx && echo "the only epoch is the best"

echo "== a training that goes on"
cp good.onnx stale.onnx
"$CLTOOL" "${training[@]}" "${worse[@]}" --epochs 2 --best stale.onnx -o a.onnx --resume --checkpoint a.npz --force >/dev/null
cmp good.onnx stale.onnx && echo "its best is better than what follows"

echo "== a training that was killed before the first epoch's end, or before --every"
# Row 2 is one of the training: no epoch ends.
cp heldout.npy rows.npy
f32 7fc00000 | dd of=rows.npy bs=1 seek=$((128 + 64 * 4)) conv=notrunc 2>/dev/null
cp good.onnx stale.onnx
"$CLTOOL" train digits.onnx -i rows.npy "${training[@]:4}" "${worse[@]}" --epochs 1 --best stale.onnx -o e.onnx --checkpoint e.npz --every 1 --force 2>&1
cmp good.onnx stale.onnx && echo "it is as it was"
"$CLTOOL" "${training[@]}" "${worse[@]}" --epochs 1 --best stale.onnx -o e.onnx --checkpoint e.npz --resume >/dev/null
cmp e.onnx stale.onnx && echo "the only epoch is the best"
# The rate grows, so that the first epoch is the best.
growing=(--optimizer sgd --clip-norm 1 --lr 1e-3 --schedule exponential:gamma=1.3)
"$CLTOOL" "${training[@]}" "${growing[@]}" --epochs 1000000000 --best killed.onnx -o f.onnx --log f.jsonl --checkpoint f.npz --resume >/dev/null 2>&1 &
while kill -0 $! && ! grep -qs '"epoch":3,.*epoch_loss' f.jsonl; do sleep 0.02; done
{ kill -KILL $! && wait $!; } 2>/dev/null
"$CLTOOL" "${training[@]}" "${growing[@]}" --epochs 3 --best whole.onnx -o g.onnx >/dev/null
"$CLTOOL" "${training[@]}" "${growing[@]}" --epochs 3 --best killed.onnx -o f.onnx --checkpoint f.npz --resume >/dev/null
cmp g.onnx f.onnx && cmp whole.onnx killed.onnx && echo "the same files"
cmp -s g.onnx whole.onnx || echo "the last epoch was not the best"

echo "== batches in parts"
"$CLTOOL" new cnn 1x8x8 --conv 8 --dense 32,10 -o start.onnx >/dev/null
parts=(train start.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --validation 0.2 -q --batch 96)
need() { "$CLTOOL" "${parts[@]}" --dry-run --json "$@" | sed -nE 's/^  "memory_bytes": ([0-9]+),?/\1/p'; }
memory=$(need --batch 32 --accumulate 3)
for epochs in 1 2; do
  "$CLTOOL" "${parts[@]}" --memory "$memory" --epochs $epochs --best best.onnx -o b.onnx --resume --checkpoint b.npz --force >/dev/null &&
    cmp b.onnx best.onnx && echo "the last epoch is the best"
done

echo "== nothing is evaluated, or written, by --dry-run"
echo "no model" >text.onnx
"$CLTOOL" "${training[@]}" "${worse[@]}" --epochs 3 --best text.onnx --resume --checkpoint a.npz --dry-run | tail -n 1 | sed -E 's/[0-9.]+ [kMG]?B/N B/'
cat text.onnx
show "${training[@]}" "${worse[@]}" --epochs 3 --best text.onnx -o c.onnx --resume --checkpoint a.npz
finish
