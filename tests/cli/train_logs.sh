#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The logs of cltool train: JSON lines, CSV, TensorBoard and a picture have the same numbers, also
# of a training that goes on.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
training=(train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --validation 0.2 -q)
compare() { python3 "$CLG_SOURCE_DIR/tests/cli/train_logs.py" "$@"; }

echo "== one training"
for log in run.jsonl run.csv; do
  "$CLTOOL" "${training[@]}" --epochs 3 -o t.onnx --force --log $log --tensorboard board_$log --plot run.svg >/dev/null
done
head -n 1 run.csv
# Rates of rows differ between runs.
sed -i -E 's/"rows_s":[0-9.e+]+/"rows_s":null/' run.jsonl
sed -i -E '2,$s/,[^,]*$/,/' run.csv
compare run.jsonl run.csv board_run.csv run.svg

echo "== it goes on"
for epochs in 1 3; do
  "$CLTOOL" "${training[@]}" --epochs $epochs -o t.onnx --force --checkpoint c.npz --resume --log on.csv >/dev/null
done
cut -d, -f1-3,7 run.csv >whole
cut -d, -f1-3,7 on.csv >parts
cmp whole parts && echo "the same lines"

echo "== refused"
show "${training[@]}" --epochs 1 -o t.onnx --force --plot run.png
show "${training[@]}" --epochs 1 -o a.onnx --plot run.svg
show "${training[@]}" --epochs 1 -o t.onnx --force --log none/run.csv
touch file
show "${training[@]}" --epochs 1 -o t.onnx --force --tensorboard file
finish
