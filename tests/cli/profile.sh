#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool profile: the tables' shape, the trace.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx

# Steps are the planner's choice: their nodes are compared, not their kernels or times.
operators() { sed -nE 's/ +$//; 1s/ +/ /gp; s/^ +[0-9]+  ([^ ]+)  .*/\1/p; /^operator/s/ +/ /gp; /runs:|can do:/s/[0-9]+(\.[0-9]+)?/N/gp'; }

show operators -- profile digits.onnx --runs 2 -q
show json_keys -- profile digits.onnx --runs 2 -q --json
echo "== a trace for Perfetto"
show operators -- profile digits.onnx --runs 2 --trace trace.json
head -c 16 trace.json
echo
for name in '"name": "host"' '"name": "device"' '"name": "load model"' '"name": "run 1"' '"node": "/11/Gemm"'; do
  grep -qF "$name" trace.json && echo "$name"
done
ls
show profile digits.onnx --trace trace.json -q
show profile digits.onnx --trace no-folder/trace.json --runs 1 -q
finish
