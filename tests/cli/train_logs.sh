#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The logs of cltool train: JSON lines, CSV, TensorBoard and a plot have the same numbers, also
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
without_rates -i run.jsonl
sed -i -E '2,$s/,[^,]*$/,/' run.csv
compare run.jsonl run.csv board_run.csv run.svg

echo "== it goes on"
for epochs in 1 3; do
  "$CLTOOL" "${training[@]}" --epochs $epochs -o t.onnx --force --checkpoint c.npz --resume --log on.csv >/dev/null
done
cut -d, -f1-3,7 run.csv >whole
cut -d, -f1-3,7 on.csv >parts
cmp whole parts && echo "the same lines"

echo "== it goes on after it was killed: with lines of steps after the checkpoint, one of them cut"
goes_on() { # LOG EPOCHS: from the checkpoint of the first epoch
  cp one.npz c.npz
  "$CLTOOL" "${training[@]}" --epochs "$2" -o t.onnx --force --checkpoint c.npz --resume --log "$1" >/dev/null
}
rm -f c.npz
"$CLTOOL" "${training[@]}" --epochs 1 -o t.onnx --force --checkpoint one.npz --log one.csv >/dev/null
for log in killed.csv killed.jsonl; do
  "$CLTOOL" "${training[@]}" --epochs 2 -o t.onnx --force --log $log >/dev/null
  truncate -s -20 $log
  goes_on $log 3
done
cut -d, -f1-3,7 killed.csv | cmp - whole && echo "the same lines"
without_rates killed.jsonl | cmp - run.jsonl && echo "the same lines"
: >empty.csv
goes_on empty.csv 2
head -n 1 empty.csv
cp one.npz c.npz
show result_figures -- "${training[@]/-q/--epochs=2}" -o t.onnx --force --checkpoint c.npz --resume --log killed.csv

echo "== refused"
show "${training[@]}" --epochs 1 -o a.onnx --log run.csv
show "${training[@]}" --epochs 1 -o a.onnx --log run.jsonl
printf '{"step":1}\nno line\n' >other.jsonl
cp one.npz c.npz
show "${training[@]}" --epochs 2 -o t.onnx --force --checkpoint c.npz --resume --log other.jsonl
cp other.jsonl other.csv
show "${training[@]}" --epochs 2 -o t.onnx --force --checkpoint c.npz --resume --log other.csv
echo "-- before data are read"
show train digits.onnx -i none.npy --target none.npy --loss cross-entropy -o a.onnx -q --plot run.png
show train digits.onnx -i none.npy --target none.npy --loss cross-entropy -o a.onnx -q --log run.csv
echo "-- a disk that is full"
for option in --log=/dev/full --plot=full/run.svg; do
  mkdir -p full
  ln -sf /dev/full full/run.svg
  show result_figures -- "${training[@]}" --epochs 1 -o t.onnx --force $option
done
show "${training[@]}" --epochs 1 -o t.onnx --force --plot run.png
show "${training[@]}" --epochs 1 -o a.onnx --plot run.svg
show "${training[@]}" --epochs 1 -o t.onnx --force --log none/run.csv
touch file
show "${training[@]}" --epochs 1 -o t.onnx --force --tensorboard file
finish
