#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train with folders of images by class; rows and targets that are refused, before anything is
# written.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx images labels.txt heldout.npy heldout_labels.npy

echo "== a subfolder for each class"
mkdir -p byclass/{zero,one,two}
n=0 labels=()
for image in images/*.png; do
  case $((n % 3)) in
    0) class=zero ;;
    1) class=one ;;
    2) class=two ;;
  esac
  cp "$image" "byclass/$class/"
  n=$((n + 1))
done
touch byclass/notes.txt
mkdir byclass/.hidden
show train_figures -- train digits.onnx -i byclass --loss cross-entropy --epochs 3 --batch 4 -o classes.onnx --classes classes.txt
cat classes.txt
mkdir flat
for class in one two zero; do # sorted by name
  for image in byclass/"$class"/*.png; do
    cp "$image" "flat/${class}_$(basename "$image")"
    case $class in
      one) labels+=(0) ;;
      two) labels+=(1) ;;
      zero) labels+=(2) ;;
    esac
  done
done
i64 "${labels[@]}" | npy '<i8' "(${#labels[@]},)" >flat.npy
"$CLTOOL" train digits.onnx -i flat --target flat.npy --loss cross-entropy --epochs 3 --batch 4 -o flat.onnx -q >/dev/null
cmp classes.onnx flat.onnx && echo "the same file"
"$CLTOOL" train digits.onnx -i image=byclass --target byclass --loss cross-entropy --epochs 3 --batch 4 -o both.onnx -q >/dev/null
cmp classes.onnx both.onnx && echo "the same file"
"$CLTOOL" predict digits.onnx -i byclass -o byclass.npy --batch 4 -q >/dev/null
"$CLTOOL" predict digits.onnx -i flat -o flat-answers.npy --batch 4 -q >/dev/null
cmp byclass.npy flat-answers.npy && echo "the same rows"

echo "== pixels as bytes, for an input that is not float32"
bytes_graph() { # DTYPE of the images, with a Cast where it is not float32
  [ "$1" = 1 ] || onnx_node_with Cast cast image floats to i 1
  onnx_node Flatten flat "$([ "$1" = 1 ] && echo image || echo floats)" f
  onnx_node MatMul product 'f w' y
  pb_text 2 bytes
  for _ in {1..192}; do f32 3a83126f; done >w # 0.001
  onnx_floats w '64 3' w
  onnx_input image "$1" N 1 8 8
  onnx_output y 1 N 3
}
onnx_model bytes_graph 2 >bytes.onnx
onnx_model bytes_graph 1 >floats.onnx
for model in bytes floats; do
  scale=() && [ $model = bytes ] || scale=(--scale 255)
  "$CLTOOL" train $model.onnx -i byclass "${scale[@]}" --loss cross-entropy --epochs 3 --batch 4 -o $model-trained.onnx -q >/dev/null
  "$CLTOOL" predict $model-trained.onnx -i byclass "${scale[@]}" -o $model.npy --batch 4 -q >/dev/null
done
cmp bytes.npy floats.npy && echo "the same training"

echo "== refused, and nothing is written"
training=(--loss cross-entropy --epochs 1 --batch 4 -o a.onnx --log a.jsonl --checkpoint a.npz -q)
show train digits.onnx -i flat --classes a.txt --target flat.npy "${training[@]}"
show train digits.onnx -i byclass --target flat "${training[@]}"
show train digits.onnx -i byclass --classes flat.npy "${training[@]}"
show train digits.onnx -i flat --target heldout_labels.npy "${training[@]}"
mkdir byclass/empty && show train digits.onnx -i byclass "${training[@]}"
rmdir byclass/empty
cp -r byclass lines && mv lines/two $'lines/two\nlines'
show train digits.onnx -i lines --classes a.txt "${training[@]}"
i64 "${labels[@]:1}" 10 | npy '<i8' "(${#labels[@]},)" >beyond.npy
show train digits.onnx -i flat --target beyond.npy "${training[@]}"
i64 -1 "${labels[@]:1}" | npy '<i8' "(${#labels[@]},)" >below.npy
show train digits.onnx -i flat --target below.npy "${training[@]}"
start=$((128 + 256 * 3)) # of the fourth row
{ head -c $start heldout.npy && printf '\0\0\300\177' && tail -c +$((start + 5)) heldout.npy; } >nan.npy
show train digits.onnx -i nan.npy --target heldout_labels.npy "${training[@]}"
rm -f nan.npy a.jsonl # the row is read after the log is opened
printf 'not an image' >flat/two_bad.png
i64 "${labels[@]}" 0 | npy '<i8' "($((${#labels[@]} + 1)),)" >more.npy
show train digits.onnx -i flat --target more.npy "${training[@]}"
rm -f more.npy flat/two_bad.png
ls a.onnx a.npz a.txt 2>&1

echo "== a class that does not count"
i64 -1 "${labels[@]:1}" | npy '<i8' "(${#labels[@]},)" >below.npy
"$CLTOOL" train digits.onnx -i flat --target below.npy --loss cross-entropy:ignore_index=-1 --epochs 1 -o ignored.onnx -q | tail -n 1 | train_figures
finish
