#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Boxes in all formats, in pixels of the image through its resizing; suppression, thresholds,
# drawings, segments, and what is refused.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
make() { python3 "$CLG_SOURCE_DIR/tests/cli/images.py" "$@"; }
make png 64 48 3 image.png 100
printf 'cat\ndog\n' >labels.txt

# A model that takes an image and returns what boxes.py writes: detector NAME FORMAT SIZE
detector_graph() {
  local name dims
  while read -r name dims; do onnx_node Identity "" "$name.data" "$name"; done <outputs
  while read -r name dims; do onnx_floats "$name.data" "$dims" "$name.bin"; done <outputs
  onnx_input x 1 1 3 "$1" "$1"
  # shellcheck disable=SC2086
  while read -r name dims; do onnx_output "$name" 1 $dims; done <outputs
}
detector() {
  python3 "$CLG_SOURCE_DIR/tests/cli/boxes.py" "$1" >outputs && onnx_model detector_graph "${2-32}" >"$1.onnx"
}
# The table of boxes alone.
boxes() { "$CLTOOL" run "$@" -q | sed -n '/^image/,$p'; }

echo "== the table"
show run --boxes list
"$CLTOOL" run --boxes list --json | json_keys

echo "== each format has the same boxes"
for format in yolov5 yolov8 yolov10 yolox ssd tf-ssd torchvision ultraface yunet detr rtdetr; do
  detector $format
  echo "-- $format"
  boxes $format.onnx --image image.png --resize pad --boxes $format
done
echo "== suppression and threshold"
boxes detr.onnx --image image.png --resize pad --boxes detr --nms 0.5
boxes yolov8.onnx --image image.png --resize pad --boxes yolov8 --nms 1
boxes yolov8.onnx --image image.png --resize pad --boxes yolov8 --nms 0.9
boxes yolov8.onnx --image image.png --resize pad --boxes yolov8 --score-threshold 0.87
boxes yolov8.onnx --image image.png --resize pad --boxes yolov8 --score-threshold 0.05
boxes yolov8.onnx --image image.png --resize pad --boxes yolov8 --score-threshold 0.95
echo "== through other resizing"
boxes yolov8.onnx --image image.png --resize stretch --boxes yolov8
boxes yolov8.onnx --image image.png --resize crop --boxes yolov8
boxes yolov8.onnx --image image.png --resize corner --boxes yolov8
boxes yolov8.onnx --image image.png --resize short:36 --crop 32 --boxes yolov8
boxes yolov8.onnx --fill zeros --boxes yolov8
echo "== labels and JSON"
boxes yolov8.onnx --image image.png --resize pad --boxes yolov8 --labels labels.txt
"$CLTOOL" run yolov8.onnx --image image.png --resize pad --boxes yolov8 --labels labels.txt -q --json |
  sed -n '/"boxes"/,$p' | short
echo "cat" >one.txt
show run yolov8.onnx --image image.png --resize pad --boxes yolov8 --labels one.txt -q
echo "== numbers that are none, and many boxes"
for format in broken broken-classes; do
  detector $format
  boxes $format.onnx --image image.png --resize pad --boxes yolov10
done
detector many
"$CLTOOL" run many.onnx --image image.png --resize pad --boxes yolov10 --score-threshold 0 --nms 0.5 2>&1 |
  grep -v 'device\|input' | sed -n '/left out\|^image/,$p'

echo "== drawings"
# pixels FILE X Y...: colours in hexadecimal
pixels() { python3 "$CLG_SOURCE_DIR/tests/cli/images.py" pixels "$@"; }
show short -- run yolov8.onnx --image image.png --resize pad --boxes yolov8 --draw drawn.png -q
pixels drawn.png 0 0 10 21 25 21 17 21 40 43 50 30
show run yolov8.onnx --image image.png --resize pad --boxes yolov8 --draw drawn.png -q
show short -- run yolov8.onnx --image image.png --resize pad --boxes yolov8 --labels labels.txt --draw drawn.png -q --force
make deep 64 48 3 deep.png
show short -- run yolov8.onnx --image deep.png --resize pad --boxes yolov8 --draw deep-drawn.png -q
pixels deep-drawn.png 10 21

echo "== segments"
detector scores 8
show run scores.onnx --image image.png --resize stretch --segments --draw segments.png -q
pixels segments.png 0 0 31 47 32 0 63 23 63 24
show run scores.onnx --image image.png --resize pad --segments -q
show run scores.onnx --image image.png --resize corner --segments -q
show run scores.onnx --image image.png --resize crop --segments -q
"$CLTOOL" run scores.onnx --image image.png --resize stretch --segments -q --json | sed -n '/"segments"/,$p'
detector mask 8
show run mask.onnx --fill zeros --segments --labels labels.txt -q
classes_graph() {
  onnx_node Identity "" c y
  onnx_input x 1 1 3 4 4
  onnx_input c 7 1 4 4
  onnx_output y 7 1 4 4
}
onnx_model classes_graph >classes.onnx
i64 0 0 1 1 0 0 1 1 0 0 1 1 7 -1 9999999 2 | npy '<i8' '(1, 4, 4)' >c.npy
show run classes.onnx -i c=c.npy --image x=image.png --resize stretch --segments -q

echo "== refused"
refused() { show run yolov8.onnx --image image.png --resize pad -q "$@"; }
refused --boxes yolo
refused --boxes yolox
refused --boxes ssd
refused --segments
refused --draw x.png
refused --nms 0.5
refused --boxes yolov8 --nms 2
refused --boxes yolov8 --draw x.jpg
refused --boxes yolov8 --draw none/x.png
refused --boxes yolov8 --image image.png --draw x.png
show run yolov8.onnx --fill zeros -q --boxes yolov8 --draw x.png
finish
