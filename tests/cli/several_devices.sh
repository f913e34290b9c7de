#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool with several devices: run, bench, profile and predict on a part of a CPU and the whole of
# it, which is there on a machine with one processor too.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_probabilities.npy
"$CLTOOL" cache warm digits.onnx -q >/dev/null
if ! "$CLTOOL" run digits.onnx -i heldout.npy -d pocl/0 -q >/dev/null 2>refusal.txt; then
  cat refusal.txt >&3
  grep -q 'this driver cannot split its device' refusal.txt || exit 1
  exit 77
fi

# Shares and times differ from run to run, and so do devices' names in the middle of a line.
any() {
  predict_figures | sed -E -e 's/device [0-9]+:[0-9]+(\/[0-9]+)?: [0-9]+ rows, [0-9]+%/device P:D: N rows, N%/' \
    -e "s/'[^']*': [0-9]+ compute units? makes? [0-9]+ parts? of/NAME: N units make N parts of/" |
    short
}

echo "== one run over both"
near=(--expect probabilities=heldout_probabilities.npy --rtol 1e-4 --atol 1e-5)
show any -- run digits.onnx -i heldout.npy -d pocl/0,pocl "${near[@]}"
show any -- run digits.onnx -i heldout.npy -d pocl/0 "${near[@]}" -q
echo "== a model that has no batch runs on the first"
fixed_graph() { relu_graph 4 2; }
onnx_model fixed_graph >fixed.onnx
show any -- run fixed.onnx --fill ones -d pocl/0,pocl
echo "== measured"
"$CLTOOL" bench digits.onnx --batch 64 --runs 5 -d pocl/0,pocl -q |
  grep -o 'device [0-9]*:[0-9]*/0,[0-9]*:[0-9]*, fp32, batch 64' |
  sed 's/[0-9]*:[0-9]*/P:D/g'
"$CLTOOL" profile digits.onnx --dim batch=64 --runs 3 -d pocl/0,pocl -q | grep -o 'Conv' | sort -u
echo "== a stream takes parts too"
show any -- predict digits.onnx -i heldout.npy -o out.npy --batch 50 -d pocl/0,pocl
echo "== layers"
parts() {
  predict_figures | sed -E -e 's/device [0-9]+:[0-9]+(\/[0-9]+)?: [0-9]+ nodes/device P:D: N nodes/' \
    -e "s/'[^']*' to '[^']*', weights [^,]*, [0-9]+%/'A' to 'B', weights N, N%/" \
    -e 's/gets [0-9.]+ .?B/gets N B/' | any
}
layers=(-d 'pocl/0,pocl' --split layers)
show parts -- run digits.onnx -i heldout.npy "${layers[@]}" "${near[@]}"
show parts -- run fixed.onnx --fill ones "${layers[@]}" -q
"$CLTOOL" bench digits.onnx --batch 8 --runs 5 --concurrency 3 "${layers[@]}" -q |
  grep -o 'device [0-9]*:[0-9]*/0,[0-9]*:[0-9]*, fp32, batch 8' | sed 's/[0-9]*:[0-9]*/P:D/g'
"$CLTOOL" profile digits.onnx --dim batch=8 --runs 3 "${layers[@]}" -q | grep -o 'Conv' | sort -u
show parts -- predict digits.onnx -i heldout.npy -o layers.npy --batch 50 "${layers[@]}"
show parts -- predict digits.onnx -i heldout.npy -o layers16.npy "${layers[@]}" -q
for file in layers layers16; do
  "$CLTOOL" run digits.onnx -i heldout.npy -d pocl -q --expect "probabilities=$file.npy" \
    --rtol 1e-4 --atol 1e-5 | grep -o 'as expected'
done
"$CLTOOL" run digits.onnx -i heldout.npy "${layers[@]}" 2>&1 >/dev/null |
  sed -nE "s/.*device [^ ]*: ([0-9]+) nodes, '([^']*)' to '([^']*)', .* gets ([0-9.]+ .?B).*/\1/p" |
  awk '{ sum += $1; n++ } END { print n " devices with " sum " nodes" }'
show parts -- run digits.onnx -i heldout.npy -d pocl --split columns
show parts -- bench digits.onnx --each --split layers
echo "== what is not there"
show any -- run digits.onnx -i heldout.npy -d pocl/100000 -q
show any -- run digits.onnx -i heldout.npy -d pocl/x -q
show any -- run digits.onnx -i heldout.npy -d pocl/0,pocl --dump all -q
finish
