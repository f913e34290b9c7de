#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --preset, --resize short:N, --crop, --pad and --filter: the sizes that they give, the places of
# images, and what is refused.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
make() { python3 "$CLG_SOURCE_DIR/tests/cli/images.py" "$@"; }

same_graph() {
  onnx_node Identity same x y
  onnx_input x 1 n "$1" h w
  onnx_output y 1 n "$1" h w
}
onnx_model same_graph 3 >same.onnx
onnx_model same_graph 1 >gray.onnx
make png 101 67 3 wide.png
make png 67 101 3 tall.png
make png 4 2 1 white.png 255

echo "== the table"
show run --preset list
"$CLTOOL" run --preset list --json | json_keys
show run same.onnx --image wide.png --preset imgnet -q

echo "== sizes: the longer side is rounded down"
size() { # OPTION...
  printf '%s: ' "$*"
  "$CLTOOL" run same.onnx -q "$@" | sed -nE 's/^y +float32 +//p' | cut -d' ' -f1
}
for image in wide tall; do
  size --image $image.png
  size --image $image.png --resize short:32
  size --image $image.png --resize short:32:40
  size --image $image.png --resize short:32 --crop 24
  size --image $image.png --crop 30x20
  size --image $image.png --resize stretch:12x16
  size --image $image.png --resize pad:12
  size --image $image.png --preset imagenet
  size --image $image.png --preset detr
  size --image $image.png --preset ultraface
done
echo "== options that are given come first"
size --image wide.png --preset imagenet --crop 200
size --image wide.png --preset imagenet --resize short:10
size --image wide.png --preset yolo --resize pad:64
show short -- run same.onnx --image wide.png --preset imagenet --mean 0 --std 1 --scale 0

echo "== around an image"
place() { # OPTION...: a white image of 4x2 in 6x6
  printf '%s\n' "$*"
  "$CLTOOL" run gray.onnx --image white.png -q -o out --force --shape x=1x1x6x6 "$@" >/dev/null &&
    tail -c 144 out/y.npy | od -An -v -tf4 -w24 | sed -E 's/ +/ /g'
}
place --resize pad
place --resize pad --pad 51
place --resize corner --pad 51
place --crop 6 --pad 51
place --resize short:3 --crop 6

echo "== refused"
refused() { show run same.onnx --image wide.png -q "$@"; }
refused --resize short
refused --resize short:0
refused --resize short:9:8
refused --resize short:99999999999
refused --resize stretch:1x2x3
refused --resize crop --crop 9
refused --crop 0
refused --pad 256
refused --pad white
refused --filter lanczos
refused --crop 8 --shape x=1x3x9x10
refused --resize short:8 --shape x=1x3x9x10
make header 1 16777216 thin.png
show run same.onnx --image thin.png --resize short:4 -q
finish
