#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool new: networks, their weights beside a script that computes them, training from them, what
# is refused.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
weights() { python3 "$CLG_SOURCE_DIR/tests/cli/new.py" "$@"; }

echo "== networks"
show new mlp 12,7,3 -o mlp.onnx
weights mlp.onnx pytorch 0 0:7,12 1:3,7
show new mlp 2x3x3,5,3 --init kaiming --seed 7 --activation tanh -o image.onnx
weights image.onnx kaiming 7 0:5,18 1:3,5
show new cnn 2x9x8 --conv 4,6 --dense 5,3 --init xavier --seed 12345678901 -o cnn.onnx
weights cnn.onnx xavier 12345678901 0:4,2,3,3 1:6,4,3,3 2:5,24 3:3,5
show new cnn 1x8x8 --conv 4 --kernel 5 --pool 1 --batchnorm --dropout 0.25 --activation gelu --dense 6,3 -o all.onnx
show new cnn 1x8x8 --dense 3 -o plain.onnx
show json_keys -- new mlp 4,2 -o json.onnx --json
"$CLTOOL" inspect all.onnx | sed -n '/^operators/,/^$/p'

echo "== one seed, one file"
"$CLTOOL" new mlp 12,7,3 -o again.onnx >/dev/null
cmp mlp.onnx again.onnx && echo "the same file"
"$CLTOOL" new mlp 12,7,3 --seed 1 -o again.onnx --force >/dev/null
cmp -s mlp.onnx again.onnx || echo "another file"

echo "== they run, with any batch"
show short -- run mlp.onnx --fill x=random:1 --dim batch=3 -q
for model in mlp image cnn all plain; do
  "$CLTOOL" run $model.onnx --fill random:1 --dim batch=3 -q | grep -c 'logits *float32'
done

echo "== training"
digits heldout.npy heldout_labels.npy
right() {
  "$CLTOOL" train "$1" -i heldout.npy --target heldout_labels.npy --loss cross-entropy --epochs "$2" --lr 5e-3 -o t.onnx \
    --log t.jsonl --force -q >/dev/null
  json_numbers epoch_loss t.jsonl | tail -n 1 | awk '{ print $1 < 0.2 ? "learned" : "loss " $1 }'
}
"$CLTOOL" new mlp 1x8x8,64,10 -o mlp_digits.onnx | numbers
right mlp_digits.onnx 12
"$CLTOOL" new cnn 1x8x8 --conv 8,16 --dense 32,10 -o cnn_digits.onnx | numbers
right cnn_digits.onnx 16

echo "== refused"
show new mlp 4,2
show new mlp 4,2 -o mlp.onnx
show new mlp 4 -o a.onnx
show new mlp 4x4,2 -o a.onnx
show new mlp 4,0,2 -o a.onnx
show new mlp 0,2 -o a.onnx
show new mlp 4,2 --conv 8 -o a.onnx
show new rnn 4,2 -o a.onnx
show new cnn 1x8x8 -o a.onnx
show new cnn 8x8 --dense 2 -o a.onnx
show new cnn 1x4x4 --conv 2,2,2 --dense 2 -o a.onnx
show new cnn 1x8x8 --conv 4 --kernel 2 --dense 2 -o a.onnx
show new mlp 4,2 --activation swish -o a.onnx
show new mlp 4,2 --init zeros -o a.onnx
show new mlp 4,3,2 --dropout 1 -o a.onnx
show new mlp 1000000,1000000,2 -o a.onnx
ls a.onnx 2>&1
finish
