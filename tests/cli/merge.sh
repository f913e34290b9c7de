#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool merge: shards of cltool predict are joined to the file of one process; shards that are
# missing, incomplete, of other rows or in another order.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy
"$CLTOOL" predict digits.onnx -i heldout.npy --batch 8 -o one.npy -q >/dev/null
for i in $(seq 11); do
  "$CLTOOL" predict digits.onnx -i heldout.npy --batch 8 -o "part$i.npy" --shard "$i/11" -q >/dev/null
done
shards=(part1.npy part2.npy part3.npy part4.npy part5.npy part6.npy part7.npy part8.npy part9.npy part10.npy part11.npy)

echo "== the rows of all shards, in order"
joined() { for part in "${shards[@]}"; do tail -c +129 "$part"; done | cmp - <(tail -c +129 all.npy) && echo "all rows"; }
show merge "${shards[@]}" -o all.npy --rows 360
joined
show merge "${shards[@]}" -o all.npy --rows 360
show merge "${shards[@]}" -o all.npy --force --rows 360 --json
joined

# A row's last bits may depend on the batch that it is in: these shards end where a batch ends.
echo "== the file of one process"
for i in $(seq 9); do
  "$CLTOOL" predict digits.onnx -i heldout.npy --batch 8 -o "even$i.npy" --shard "$i/9" -q >/dev/null
done
show merge even[1-9].npy -o even.npy --rows 360
cmp one.npy even.npy && echo "as one process"
show merge one.npy -o same.npy -q --rows 360
cmp one.npy same.npy && echo "one shard"

echo "== rows of no bytes"
npy '<f4' '(2, 0)' </dev/null >thin.npy
npy '<f4' '(1, 0)' </dev/null >thinner.npy
show merge thin.npy thinner.npy -o thin-all.npy --rows 3

echo "== large shards, in blocks"
for i in 1 2; do
  npy '<f4' '(3, 700000)' <"/dev/null" >"large$i.npy"
  yes "$i" | head -c $((3 * 700000 * 4)) >>"large$i.npy"
done
show merge large1.npy large2.npy -o large.npy --rows 6
{ tail -c +129 large1.npy && tail -c +129 large2.npy; } | cmp - <(tail -c +129 large.npy) && echo "both"

echo "== more shards than files that may be open"
mkdir many
for i in $(seq 100 179); do f32 3f8000$((i % 80 + 10)) | npy '<f4' '(1, 1)' >"many/$i.npy"; done
(ulimit -n 40 && "$CLTOOL" merge many/*.npy -o many.npy --rows 80 2>&1)
for i in $(seq 100 179); do f32 3f8000$((i % 80 + 10)); done | cmp - <(tail -c +129 many.npy) && echo "all"

echo "== faults: no file"
show merge "${shards[@]:0:4}" "${shards[@]:5}" -o new.npy -q --rows 360
show merge "${shards[@]:0:10}" -o new.npy -q --rows 360
show merge part11.npy "${shards[@]:0:10}" -o new.npy -q --rows 360
show merge part1.npy part1.npy -o new.npy -q --rows 360
show merge part1.npy large1.npy -o new.npy -q --rows 360
i64 1 2 | npy '<i8' '(2, 1)' >i64.npy
f32 00000000 | npy '<f4' '(1, 1)' >f32.npy
show merge i64.npy f32.npy -o new.npy -q --rows 360
head -c 300 part2.npy >cut.npy
show merge part1.npy cut.npy -o new.npy -q --rows 360
show merge part1.npy nothing.npy -o new.npy -q --rows 360
show merge part1.npy part2.npy -q --rows 66
show merge part1.npy part2.npy -o part1.npy --force -q --rows 66
show merge -o new.npy --rows 3
show merge part1.npy part2.npy -o new.npy -q
show merge part1.npy part2.npy -o new.npy -q --rows 0
show merge part1.npy part2.npy -o new.csv -q --rows 66
show merge part1.npy part2.npy -o no-folder/new.npy -q --rows 66
ls new* 2>/dev/null
echo "== as a shell sorts them"
show merge part10.npy part11.npy part9.npy -o new.npy --rows 96
finish
