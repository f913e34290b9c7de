#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train reads rows where they are in a file: the same memory for 64 MB and for 768 MB of data,
# and rows of a long .csv in any order.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

mean_graph() { # y = w * the mean of a row
  onnx_node GlobalAveragePool mean x m
  onnx_node Mul scale 'm w' y
  printf '\0\0\200\77' >w
  onnx_floats w 1 w
  onnx_input x 1 N 1 256 1024
  onnx_output y 1 N 1 1 1
}
onnx_model mean_graph >mean.onnx
rows_of() { # N NAME: N rows of 1 MB, which the file system need not store, and their targets
  npy '<f4' "($1, 1, 256, 1024)" </dev/null >"$2.npy"
  truncate -s $(($(wc -c <"$2.npy") + $1 * 1048576)) "$2.npy"
  npy '<f4' "($1, 1, 1, 1)" </dev/null >"$2-target.npy"
  truncate -s $(($(wc -c <"$2-target.npy") + $1 * 4)) "$2-target.npy"
}
peak() { # NAME: the peak memory in MB of a training with these rows
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' \
    "$CLTOOL" train mean.onnx -i "$1.npy" --target "$1-target.npy" --loss mse --epochs 1 --batch 4 --validation 0.1 \
    -o "$1.onnx" --log "$1.jsonl" -q
}

echo "== peak memory does not depend on the number of rows"
rows_of 64 small
rows_of 768 large
small=$(peak small) large=$(peak large)
grep -c '"rate"' large.jsonl
# 704 MB more of data; a sanitizer keeps up to 256 MB of what was freed
[ $((large - small)) -lt 384 ] && echo "no more memory" || echo "$small MB, then $large MB"
echo "$small MB with 64 rows of 1 MB, $large MB with 768" >&2
rm -f small.npy large.npy

echo "== a long .csv in any order: the same as .npy"
line_graph() {
  onnx_node MatMul product 'x w' y
  f32 3f000000 3e800000 >w
  onnx_floats w '2 1' w
  onnx_input x 1 N 2
  onnx_output y 1 N 1
}
onnx_model line_graph >line.onnx
n=150000 # more than the rows that are marked
seq $n | awk '{ printf "%d,%d\n", $1 % 7, $1 % 11; if ($1 % 1000 == 0) print "" }' >x.csv
seq $n | awk '{ print $1 % 5 }' >t.csv
"$CLTOOL" train line.onnx -i x.csv --target t.csv --loss mse --epochs 1 --batch 5000 -o from-csv.onnx -q >/dev/null
perl -ne 'next unless /,/; print pack "f<2", split /,/' x.csv | npy '<f4' "($n, 2)" >x.npy
perl -ne 'print pack "f<", $_' t.csv | npy '<f4' "($n, 1)" >t.npy
"$CLTOOL" train line.onnx -i x.npy --target t.npy --loss mse --epochs 1 --batch 5000 -o from-npy.onnx -q >/dev/null
cmp from-csv.onnx from-npy.onnx && echo "the same file"

echo "== the line of a bad row"
{ seq 100 | sed 's/$/,1/' && printf '\n\n' && echo 'five,1' && seq 20 | sed 's/$/,1/'; } >bad.csv
seq 121 >t.csv
show train line.onnx -i bad.csv --target t.csv --header no --loss mse --epochs 1 -o bad.onnx -q
finish
