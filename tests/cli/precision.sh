#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --precision and --keep-fp32: near fp32, but not the same; and the precision is reported.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy
expected=(--expect probabilities="$CLG_SOURCE_DIR/examples/digits/heldout_probabilities.npy" -i image=heldout.npy -q)
precisions() { sed -nE 's/.*"precision": "([a-z0-9]+)".*/\1/p'; }
verdict() { sed -nE 's/^probabilities (as expected|differs).*/\1/p; s/.*elements differ.*/some differ/p'; }

echo "== fp16"
"$CLTOOL" run digits.onnx "${expected[@]}" --precision fp16 --rtol 1e-2 --atol 1e-3 --json -o half | precisions
show verdict -- run digits.onnx "${expected[@]}" --precision fp16 --rtol 1e-2 --atol 1e-3
show verdict -- run digits.onnx "${expected[@]}" --precision fp16 --rtol 1e-6 --atol 1e-6
echo "== every node kept, and auto on a CPU: fp32"
show verdict -- run digits.onnx "${expected[@]}" --precision fp16 --keep-fp32 '*' --rtol 1e-5 --atol 1e-6
"$CLTOOL" run digits.onnx --fill random:1 --dim batch=1 -d cpu --precision auto --json 2>notes | precisions
grep -o 'precision fp32' notes
echo "== two precisions in turn"
"$CLTOOL" bench digits.onnx -q -d cpu --runs 2 --compare cpu@fp16 --json | precisions
"$CLTOOL" profile digits.onnx -q -d cpu --runs 1 --precision fp16 --json | precisions
"$CLTOOL" predict digits.onnx -q -d cpu -i image=heldout.npy -o probabilities=p.npy --precision fp16 --json | precisions
echo "== a node that parts"
"$CLTOOL" diff digits.onnx -q -i image=heldout.npy -d cpu --against cpu@fp16 --rtol 1e-6 --atol 1e-6 | sed -nE "s/^(first to part: node '[^']*').*/\1/p"
"$CLTOOL" diff digits.onnx -q -i image=heldout.npy -d cpu --against cpu@fp16 --rtol 2e-2 --atol 2e-2 >/dev/null
echo "exit $?"
finish
