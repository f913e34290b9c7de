#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ONNX's ImageDecoder: encoded images are inputs of a model; what is not an image is an error that
# names the node and the input.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
decoder() { # FORMAT DTYPE DIM...
  onnx_node_with ImageDecoder decode bytes pixels pixel_format s "$1"
  onnx_input bytes "$2" "${@:3}"
  onnx_output pixels 2 h w c
}
bytes_npy() { npy '|u1' "($(wc -c <"$1"),)" <"$1"; }
# Two pixels, red and blue, as PPM and BMP, which need no library that may be missing.
printf 'P6 2 1 255\n\377\0\0\0\0\377' >two.ppm
{
  printf 'BM\76\0\0\0\0\0\0\0\66\0\0\0\50\0\0\0\2\0\0\0\1\0\0\0\1\0\30\0'
  head -c 24 /dev/zero
  printf '\0\0\377\377\0\0\0\0'
} >two.bmp
for format in RGB BGR Grayscale; do
  opset=20 onnx_model decoder "$format" 2 n >"$format.onnx"
  for file in two.ppm two.bmp; do
    bytes_npy "$file" >"$file.npy"
    show run "$format.onnx" -i "$file.npy" -q
  done
done
show inspect RGB.onnx --ops -q

# What is no image, or none that is read.
printf 'this is no image' >text
head -c 16 two.ppm >part
printf 'P6 100000 100000 255\n' >huge
: >empty
for file in text part huge empty; do
  bytes_npy "$file" >"$file.npy"
  show run RGB.onnx -i "$file.npy" -q
done
npy '<f4' '(3,)' < <(head -c 12 /dev/zero) >floats.npy
show run RGB.onnx -i floats.npy -q
npy '|u1' '(2, 2)' < <(head -c 4 /dev/zero) >matrix.npy
show run RGB.onnx -i matrix.npy -q
opset=20 onnx_model decoder RGB 2 2 n >matrix.onnx
show run matrix.onnx -i matrix.npy -q
opset=20 onnx_model decoder RGB 1 n >floats.onnx
show run floats.onnx -i floats.npy -q
opset=20 onnx_model decoder CMYK 2 n >cmyk.onnx
show run cmyk.onnx -i two.ppm.npy -q
printf 'P6 4000 4000 255\n' | cat - <(head -c 48000000 /dev/zero) >large
bytes_npy large >large.npy
show run RGB.onnx -i large.npy -q --limits memory=64m
export CLG_IMAGES=off
show run RGB.onnx -i two.ppm.npy -q
cp "$CLG_BUILD_DIR/libclgraph.so" other.so
export CLG_IMAGES=$WORK/other.so
show run RGB.onnx -i two.ppm.npy -q
finish
