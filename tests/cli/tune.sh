#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool tune: what is measured, kept, exported and followed.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
CLG_CACHE_DIR=$WORK/store
export CLG_CACHE_DIR

# Which implementation is the fastest depends on the machine: nodes are compared, not
# implementations or times.
problems() { sed -nE '1s/ +/ /gp; s/^(\/[^ ]+) .*/\1/p; /^[0-9]+ problems/s/[0-9]+(\.[0-9]+)?( ms)/N\2/gp; /^kept/p'; }

show problems -- tune digits.onnx --time 0.1 -q --export choices.txt
head -n 1 choices.txt
echo "lines that are an implementation, a tab and a problem: $(grep -cP '^\w+\t\w+ simd float32\[' choices.txt), others: $(grep -cvP '^\w+\t\w+ simd float32\[' choices.txt)"
echo "entries of the cache: $("$CLTOOL" cache list | grep -c 'measured choices of kernels')"

echo "== preferred implementations"
impls() { "$CLTOOL" inspect digits.onnx --plan -q "$@" | sed -nE 's/^ +[0-9]+ +(Fused|Blocked)Conv +([a-z0-9_]+) .*/\2/p'; }
impls --prefer conv_blocked | sort | uniq -c | sed -E 's/^ +//'
show json_keys -- tune digits.onnx --time 0.1 -q --json

show tune digits.onnx --time 0.1 --export choices.txt -q
show tune digits.onnx --time -1
show tune
finish
