#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool predict: datasets in, files out; shards; several devices; faults; Ctrl-C.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_probabilities.npy heldout_labels.npy images
"$CLTOOL" cache warm digits.onnx -q >/dev/null

# Times and rates differ from run to run, and so does a batch that was measured.
any() { predict_figures | sed -E '/measured/s/batch [0-9]+/batch N/'; }
unbatched() { any | sed -E 's/batch [0-9]+/batch N/'; }
fixed_json() { sed -E -e 's/: [0-9]+\.[0-9]+(e-[0-9]+)?/: N/' -e 's/(rss_bytes": )[0-9]+/\1N/'; }
# Whether two files hold the same numbers; devices may differ in the last digits with another batch.
same() { # FILE EXPECTED
  "$CLTOOL" run identity.onnx -i "$1" --expect "$2" --rtol 1e-4 --atol 1e-5 -q | grep -o 'as expected\|NOT as.*'
}
identity_graph() {
  onnx_node Identity '' x y
  pb_text 2 identity
  onnx_input x 1 N 10
  onnx_output y 1 N 10
}
onnx_model identity_graph >identity.onnx
fixed_graph() { relu_graph 4 2; }
onnx_model fixed_graph >fixed.onnx

echo "== a .npy file"
show any -- predict digits.onnx -i image=heldout.npy -o probabilities=out.npy --batch 50
same out.npy heldout_probabilities.npy
show any -- predict digits.onnx -i heldout.npy -o out.npy --batch 50
show unbatched -- predict digits.onnx -i heldout.npy -o out.npy --force
same out.npy heldout_probabilities.npy
show any -- predict digits.onnx -i heldout.npy -o out.npy --force --batch 1000 -q
same out.npy heldout_probabilities.npy
show any -- predict digits.onnx -i heldout.npy -o out.npy --force --dim batch=7 -q
same out.npy heldout_probabilities.npy
show fixed_json -- predict digits.onnx -i heldout.npy -o out.npy --force --batch 64 --json -q
ls

echo "== images"
show any -- predict digits.onnx -i image=images -o images.npy --batch 8
show any -- predict digits.onnx --image images/00.png --image images/01.png -o two.npy --batch 8 -q
given=()
for image in images/*.png; do given+=(--image "$image"); done
"$CLTOOL" run digits.onnx "${given[@]}" -o at-once -q >/dev/null
same images.npy at-once/probabilities.npy

echo "== tables"
{
  seq -s, 64 | sed 's/[0-9]*/p&/g'
  for i in $(seq 9); do seq -s, "$i" $((i + 63)); done
} >table.csv
show any -- predict digits.onnx -i table.csv -o table.npy --batch 4 -q
"$CLTOOL" run digits.onnx -i table.csv -o at-once -q --force >/dev/null
same table.npy at-once/probabilities.npy
sum_graph() {
  onnx_node Add '' 'a b' ab
  onnx_node Mul '' 'ab scale' y
  pb_text 2 sum
  onnx_input a 1 N
  onnx_input b 1 N
  onnx_input scale 1
  onnx_output y 1 N
}
onnx_model sum_graph >sum.onnx
printf 'b,a\n1,2\n\n3,4\n5,6\r\n' >ab.csv
f32 40000000 | npy '<f4' '()' >scale.npy
show any -- predict sum.onnx -i ab.csv -i scale=scale.npy -o y.npy --batch 2 -q
f32 40c00000 41600000 41b00000 | npy '<f4' '(3,)' >y-expected.npy
cmp y.npy y-expected.npy && echo "(a + b) * 2"
f32 3f800000 40000000 40400000 | npy '<f4' '(3,)' >a.npy
show any -- predict sum.onnx -i a=a.npy --fill b=ones --fill scale=ones -o y.npy --force -q --batch 2
f32 40000000 40400000 40800000 | npy '<f4' '(3,)' >y-expected.npy
cmp y.npy y-expected.npy && echo "a + 1"

echo "== tables without a header"
printf '\xef\xbb\xbf1,-2\n\n3,-4\r\n5,-6' >numbers.csv
show any -- predict fixed.onnx -i numbers.csv -o from-table.npy
f32 3f800000 00000000 40400000 00000000 40a00000 00000000 | npy '<f4' '(3, 2)' >from-table-expected.npy
cmp from-table.npy from-table-expected.npy && echo "three rows"
show any -- predict fixed.onnx -i numbers.csv -o from-table.npy --force --header yes -q
tail -c +129 from-table.npy | cmp - <(f32 40400000 00000000 40a00000 00000000) && echo "two rows"
printf 'a,b\n1,-2\n' >words.csv
show any -- predict fixed.onnx -i words.csv -o from-table.npy --force
show any -- predict fixed.onnx -i words.csv -o from-table.npy --force --header yes
show any -- predict fixed.onnx -i words.csv -o from-table.npy --force --header no -q
show any -- predict fixed.onnx -i words.csv -o from-table.npy --force --header maybe
printf '1,\n3,4\n' >gap.csv # an empty cell makes no header
show any -- predict fixed.onnx -i gap.csv -o from-table.npy --force -q
show any -- predict sum.onnx -i numbers.csv -i scale=scale.npy -o none.npy -q
cat numbers.csv >more.csv && printf '\n7,-8\n' >>more.csv
show short -- run fixed.onnx -i x=more.csv

echo "== shards are the whole"
for part in 1 2 3 4; do
  show any -- predict digits.onnx -i heldout.npy -o "part$part.npy" --shard $part/4 --batch 32 -q
done
for part in 1 2 3 4; do tail -c +129 part$part.npy; done | npy '<f4' '(360, 10)' >parts.npy
same parts.npy heldout_probabilities.npy
show any -- predict digits.onnx -i heldout.npy -o few.npy --shard 360/400 --batch 8 -q
show any -- predict digits.onnx -i heldout.npy -o few.npy --shard 361/400 --batch 8 -q --force

echo "== a batch that the model fixes"
f32 3f800000 c0000000 40400000 c0800000 40a00000 c0c00000 40e00000 c1000000 41100000 c1200000 |
  npy '<f4' '(5, 2)' >five.npy
show any -- predict fixed.onnx -i five.npy -o relu.npy -q
f32 3f800000 00000000 40400000 00000000 40a00000 00000000 40e00000 00000000 41100000 00000000 |
  npy '<f4' '(5, 2)' >relu-expected.npy
cmp relu.npy relu-expected.npy && echo "five rows out of two batches"
show any -- predict fixed.onnx -i five.npy -o other.npy --batch 2 -q
show any -- predict fixed.onnx -i five.npy -o relu.npy --batch 4 -q --force

echo "== no rows"
npy '<f4' '(0, 2)' </dev/null >none.npy
show any -- predict fixed.onnx -i none.npy -o empty.npy -q
head -c 128 empty.npy | tail -c +11 | sed 's/ *$//'

echo "== element types and orders"
printf '\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\300' | npy '<f8' '(1, 2)' >f64.npy
show any -- predict fixed.onnx -i f64.npy -o one.npy
i64 1 -2 | npy '<i8' '(1, 2)' >i64.npy
show predict fixed.onnx -i i64.npy -o cast.npy -q
show any -- predict fixed.onnx -i i64.npy -o cast.npy --cast
tail -c +129 one.npy | cmp - <(f32 3f800000 00000000) && tail -c +129 cast.npy | cmp - <(f32 3f800000 00000000) && echo "1 and 0"

echo "== several devices"
POCL_DEVICES="pthread pthread" show any -- predict digits.onnx -i heldout.npy -o out2.npy -d pocl#0,pocl#1 --batch 20
same out2.npy heldout_probabilities.npy

echo "== faults"
show predict digits.onnx -i heldout.npy
show predict digits.onnx -i heldout.npy -o
show predict digits.onnx -i heldout.npy -o out.txt
show predict digits.onnx -i heldout.npy -o out.txt
mkdir folder.npy
show predict digits.onnx -i heldout.npy -o folder.npy --force
show predict digits.onnx -i heldout.npy -o out.npy
show predict digits.onnx -i heldout.npy -o nothing=new.npy
show predict digits.onnx -i heldout.npy -o probabilities=new.npy -o probabilities=new2.npy
show predict digits.onnx -i heldout.npy -o no-folder/new.npy
show predict digits.onnx -o new.npy
show predict digits.onnx --fill zeros -o new.npy
show predict digits.onnx -i nothing.npy -o new.npy
show predict digits.onnx -i five.npy -o new.npy
show predict digits.onnx -i digits.onnx -o new.npy
show predict digits.onnx -i . -o new.npy
show predict digits.onnx -i heldout.npy -o new.npy --batch 0 -q
show predict digits.onnx -i heldout.npy -o new.npy --batch 1,2 -q
for shard in 0/2 3/2 2 1/ /2 a/b; do show predict digits.onnx -i heldout.npy -o new.npy -q --shard $shard; done
show predict sum.onnx -i ab.csv -o new.npy -q
show predict sum.onnx -i ab.csv -i a=a.npy -o new.npy -q
show predict digits.onnx -i heldout.npy -o new.npy --expect x.npy
printf 'b\n1\n2\n' >short.csv
show predict sum.onnx -i a=a.npy -i b=short.csv --fill scale=ones -o new.npy -q
sed '7s/,[0-9]*$/,oops/' table.csv >oops.csv
show predict digits.onnx -i oops.csv -o new.npy -q --batch 2
head -c 500 heldout.npy >cut.npy
show predict digits.onnx -i cut.npy -o new.npy -q
mkdir broken
cp images/00.png images/01.png broken
echo "no image" >broken/02.png
show any -- predict digits.onnx -i broken -o broken.npy -q --batch 1
show predict digits.onnx -i heldout.npy -o new.npy --json -q --batch x
ls new* 2>/dev/null

echo "== outputs that are links, pipes and devices"
f32 3f800000 c0000000 | npy '<f4' '(1, 2)' >row.npy
f32 3f800000 00000000 | npy '<f4' '(1, 2)' >row-expected.npy
mkfifo pipe.npy
ln -s target.npy link.npy
ln -s /dev/null null.npy
echo before >target.npy
timeout 60 cat pipe.npy >from-pipe.npy &
for output in pipe link null; do show any -- predict fixed.onnx -i row.npy -o $output.npy --force -q; done
wait
cmp from-pipe.npy row-expected.npy && cmp target.npy row-expected.npy && echo "the expected rows"
[ -p pipe.npy ] && [ -L link.npy ] && [ -c /dev/null ] && echo "a pipe, a link, a device"

echo "== what a killed process left"
npy '<f4' '(40000000, 1, 8, 8)' </dev/null >large.npy
truncate -s $((128 + 40000000 * 256)) large.npy
"$CLTOOL" predict digits.onnx -i large.npy -o killed.npy --batch 64 -q 2>/dev/null &
for _ in $(seq 1200); do
  compgen -G "killed.npy.tmp.*" >/dev/null && break
  sleep 0.05
done
kill -KILL $!
wait $! 2>/dev/null
ls killed.npy*
show any -- predict fixed.onnx -i row.npy -o killed.npy -q
ls killed.npy*

echo "== interrupted: exit 130, and no file"
# Ten gigabytes of zeros that take no room on the disk.
npy '<f4' '(40000000, 1, 8, 8)' </dev/null >large.npy
truncate -s $((128 + 40000000 * 256)) large.npy
interrupted() { # SIGNAL OUTPUT ARGS...
  local signal=$1 output=$2 pid
  shift 2
  printf '$ cltool predict digits.onnx -i large.npy -o %s, %s\n' "$output${*:+ $*}" "$signal"
  "$CLTOOL" predict digits.onnx -i large.npy -o "$output" --batch 64 "$@" >out 2>err &
  pid=$!
  for _ in $(seq 1200); do
    compgen -G "$output.tmp.*" >/dev/null && break
    sleep 0.05
  done
  sleep 0.2
  kill "-$signal" "$pid"
  wait "$pid"
  local code=$?
  grep -v '^cltool: \(device\|input\)' err | sed 's/^/! /'
  cat out
  printf '[exit %d]\n\n' "$code"
  ls "$output"* 2>/dev/null
}
interrupted INT stopped.npy
interrupted INT stopped.npy --json
interrupted TERM stopped.npy
echo kept >kept.npy
interrupted INT kept.npy --force
cat kept.npy
finish
