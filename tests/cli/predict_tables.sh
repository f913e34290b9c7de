#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool predict: results as .csv and .jsonl, --top and --labels, presets, skipped files.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
make() { python3 "$CLG_SOURCE_DIR/tests/cli/images.py" "$@"; }
digits digits.onnx labels.txt images

mkdir photos
for i in 0 1 2; do cp images/0$i.png photos; done
head -c 100 images/03.png >'photos/a, "cut".png'
echo text >photos/notes.txt
mkdir photos/more

predict() { show predict_figures -- predict "$@" --batch 2 --force; }
echo "== the best classes of each image"
predict digits.onnx -i photos -o top.csv --top 2 --labels labels.txt
short <top.csv
predict digits.onnx -i photos -o top.csv --top 1 -q
short <top.csv
predict digits.onnx -i photos -o top.jsonl --top 2 --labels labels.txt -v 2>&1 | grep 'skipped'
short <top.jsonl
"$CLTOOL" predict digits.onnx -i photos -o top.jsonl --top 1 -q --force --json 2>&1 | sed -n '/"failed"/,$p' | normal
echo "== more classes than there are"
predict digits.onnx -i images -o top.csv --top 20 -q
head -2 top.csv | short | cut -c1-44
head -2 top.csv | tail -1 | tr ',' '\n' | wc -l

echo "== all elements"
same_graph() {
  onnx_node Identity '' x y
  onnx_input x "$@"
  onnx_output y "$@"
}
onnx_model same_graph 1 N 2 >floats.onnx
onnx_model same_graph 7 N >integers.onnx
f32 3f800000 c0000000 7f800000 7fc00000 3e000000 3f9e0652 | npy '<f4' '(3, 2)' >x.npy
i64 9007199254740993 -1 5 | npy '<i8' '(3,)' >i.npy
for kind in csv jsonl; do
  predict floats.onnx -i x.npy -o y.$kind -q
  cat y.$kind
  predict integers.onnx -i i.npy -o i.$kind -q
  cat i.$kind
  predict floats.onnx -i x.npy -o part.$kind --shard 2/2 -q
  cat part.$kind
done
echo "== names of outputs in a header"
names_graph() {
  onnx_node Identity '' x 'a,"b"'
  onnx_input x 1 N 2
  onnx_output 'a,"b"' 1 N 2
}
onnx_model names_graph >names.onnx
predict names.onnx -i x.npy -o y.csv -q
head -1 y.csv
echo "== a preset"
image_graph() {
  onnx_node GlobalAveragePool '' x y
  onnx_input x 1 N 3 224 224
  onnx_output y 1 N 3 1 1
}
onnx_model image_graph >image.onnx
mkdir gray
make png 300 260 3 gray/g.png 127
predict image.onnx -i gray -o y.csv --top 1 --preset imagenet
short <y.csv

echo "== refused; no file is left"
rm -f ./*.csv ./*.jsonl
predict digits.onnx -i photos -o y.npy --top 1 -q
predict digits.onnx -i photos -o y.csv --labels labels.txt -q
predict digits.onnx -i photos -o y.csv --top 1 --resume -q
predict floats.onnx -i x.npy -o y.csv --top 1 --labels labels.txt -q
predict integers.onnx -i i.npy -o y.csv --top 1 -q
predict floats.onnx -i x.npy -o none/y.csv -q
predict floats.onnx -i x.npy -o y.txt -q
mkdir y.csv
predict floats.onnx -i x.npy -o y.csv -q
rmdir y.csv
for file in *.csv *.jsonl *.part*; do [ ! -e "$file" ] || echo "$file"; done
echo old >y.csv
show predict floats.onnx -i x.npy -o y.csv -q
cat y.csv
finish
