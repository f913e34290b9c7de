#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# predict.sh [ROUNDS [BATCH]]: how much cltool predict loses against the same batches already in
# memory, and whether its memory grows with the rows. predict and bench run in turn; what counts is
# the median of the ratios, and processor time where the machine has other work. Needs 300 MB in the
# folder for temporary files. CLTOOL names another cltool than build/cltool.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cltool=${CLTOOL:-$root/build/cltool}
rounds=${1:-9}
batch=${2:-64}
model=$root/examples/digits/digits.onnx
source=$root/examples/digits/heldout.npy # 360 rows of 256 bytes after a header of 128
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# rows N: a .npy file of N rows, those of the source again and again.
rows() {
  local header="{'descr': '<f4', 'fortran_order': False, 'shape': ($1, 1, 8, 8), }"
  printf '\x93NUMPY\x01\x00v\x00%-117s\n' "$header"
  tail -c +129 "$source" >"$work/some"
  for ((have = 360; have <= $1; have += 360)); do cat "$work/some"; done
  head -c $(($1 % 360 * 256)) "$work/some"
}
number() { sed -nE "s/^ *\"$1\": ([0-9.e+-]+),?\$/\1/p" | head -n 1; }
median() { sort -g | awk '{ x[NR] = $1 } END { printf "%.3f", NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
# Processor seconds of a command, its output in a file.
cpu() {
  local TIMEFORMAT='%U %S'
  { time "$@" >"$work/json"; } 2>&1 | awk '{ print $1 + $2 }'
}
hold() { "$cltool" bench "$model" -i "$work/batch.npy" --runs $((100000 / batch)) --json -q; }
predict() { "$cltool" predict "$model" -i "$work/$1.npy" -o "$work/out.npy" --force --json -q --batch "$batch"; }

for n in 10000 100000 1000000; do rows $n >"$work/$n.npy"; done
rows "$batch" >"$work/batch.npy"
predict 10000 >/dev/null # whatever is compiled is compiled now
for ((round = 0; round < rounds; round++)); do
  streamed_cpu=$(cpu predict 100000)
  streamed=$(number rows_per_s <"$work/json")
  held_cpu=$(cpu hold)
  held=$(number mean <"$work/json" | awk -v batch="$batch" '{ print batch * 1000 / $1 }')
  echo "$streamed $held $streamed_cpu $held_cpu" | tee -a "$work/all" | awk '{
    printf "streamed %.0f rows/s, in memory %.0f, ratio %.3f; processor time %.2f s, %.2f s, ratio %.3f\n",
      $1, $2, $1 / $2, $3, $4, $3 / $4 }'
done
echo "batch $batch, 100000 rows, $rounds rounds: median of the ratios $(awk '{ print $1 / $2 }' "$work/all" | median)," \
  "of processor time $(awk '{ print $3 / $4 }' "$work/all" | median)"
for n in 10000 1000000; do
  predict $n | number peak_rss_bytes | awk -v n=$n '{ printf "%d rows: peak memory %.1f MB\n", n, $1 / 1e6 }'
done
