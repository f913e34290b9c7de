#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool bench: what it prints, not how fast it is.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy

digest() { "$CLTOOL" bench digits.onnx -i heldout.npy -q --json --warmup 0 "$@" | sed -nE 's/.*"outputs_digest": "(.*)".*/\1/p'; }

show bench_figures -- bench digits.onnx --runs 3
show bench_figures -- bench digits.onnx -i heldout.npy --runs 2 --warmup 0 -q
show bench_figures -- bench digits.onnx --runs 2 --batch 1,4 -q
show bench_figures -- bench digits.onnx --runs 2 --concurrency 2 -q
show bench_figures -- bench digits.onnx --runs 2 --each -q
show bench_figures -- bench digits.onnx --runs 2 --compare auto -q
echo "== JSON"
show json_keys -- bench digits.onnx --runs 2 --json -q
show json_keys -- bench digits.onnx --runs 2 --batch 2,3 --json -q
show json_keys -- bench digits.onnx --runs 2 --compare auto --json -q
"$CLTOOL" bench digits.onnx --runs 3 --batch 4 --json -q | grep -E '"(batch|runs|precision)"'
echo "== the same input gives the same digest, however often it runs"
[ "$(digest --runs 1)" = "$(digest --runs 5)" ] && [ -n "$(digest --runs 1)" ] && echo "the same"
[ "$(digest --runs 1)" != "$(digest --runs 1 --batch 3)" ] && echo "another for another batch"

echo "== faults"
fixed_graph() { relu_graph 2 3; }
onnx_model fixed_graph >fixed.onnx
show bench fixed.onnx --batch 4 -q
show bench_figures -- bench fixed.onnx --batch 2 -q --runs 1
show bench digits.onnx --batch 0 -q
show bench digits.onnx --batch 1,,2 -q
show bench digits.onnx --batch 1,2 --compare auto -q
show bench digits.onnx --compare cpu@half -q
show bench nothing.onnx
show bench
show bench digits.onnx more -q
show bench digits.onnx -o results.txt -q

echo "== files of results"
show bench_figures -- bench digits.onnx --runs 2 --batch 1,4 --measure -q -o results.md
bench_figures <results.md
"$CLTOOL" bench digits.onnx --runs 2 --batch 1,4 -q -o results.csv >/dev/null
head -n 1 results.csv
awk -F, '{ print NF, $6, $7, $8, ($9 > 0) && ($9 <= $10) && ($10 <= $11) }' results.csv
"$CLTOOL" bench digits.onnx --runs 2 --batch 1,4 -q -o results.json >/dev/null
json_keys <results.json
show bench digits.onnx --runs 2 -q -o results.csv
show bench digits.onnx --runs 2 -q -o no-folder/results.csv
finish
