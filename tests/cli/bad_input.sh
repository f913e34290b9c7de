#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Inputs that do not fit, damaged files, data out of range, more memory than there is: the exit code
# and the message.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx images
head -c 256 /dev/zero >zeros64 # 64 float32
npy '<f4' '(1, 1, 8, 8)' <zeros64 >good.npy

echo "== wrong names, numbers, shapes, dtypes: exit 2"
show run digits.onnx -i photo=good.npy
show run digits.onnx
show run digits.onnx -i image=good.npy -i image=good.npy
show run digits.onnx -i image=good.npy --fill image=ones
show run digits.onnx -i good.npy --dim batch=2
npy '<f4' '(1, 8, 8)' <zeros64 >rank3.npy
show run digits.onnx -i rank3.npy -q
npy '<f4' '(1, 1, 4, 16)' <zeros64 >shape.npy
show run digits.onnx -i shape.npy -q
head -c 64 zeros64 | npy '|u1' '(1, 1, 8, 8)' >dtype.npy
show run digits.onnx -i dtype.npy -q
head -c 512 /dev/zero | npy '<c8' '(1, 1, 8, 8)' >complex.npy
show run digits.onnx -i complex.npy -q
two_graph() {
  onnx_node Add sum 'x z' y
  onnx_input x 1 3
  onnx_input z 1 3
  onnx_output y 1 3
}
onnx_model two_graph >two.onnx
show run two.onnx -i good.npy
show run two.onnx --fill x=ones
show run two.onnx --fill x=ones --fill q=ones
show run digits.onnx -i good.npy --json --dim depth=3

echo "== files that are missing or damaged: exit 4"
show run digits.onnx -i missing.npy
show run digits.onnx -i image=images
head -c 200 zeros64 | npy '<f4' '(1, 1, 8, 8)' >short.npy
show run digits.onnx -i short.npy
npy '<f4' '(1000000000000, 1000000000000)' <zeros64 >huge.npy
show run digits.onnx -i huge.npy
npy '<f4' '(100000, 100000, 8)' <zeros64 >large.npy
show run digits.onnx -i large.npy
npy '<f4' '(-1, 64)' <zeros64 >negative.npy
show run digits.onnx -i negative.npy
npy '|O' '(1,)' <zeros64 >object.npy
show run digits.onnx -i object.npy
head -c 64 good.npy >header.npy
show run digits.onnx -i header.npy
printf 'no array' >text.npy
show run digits.onnx -i text.npy
: >empty.npy
show run digits.onnx -i empty.npy
printf 'PK\3\4 no archive' >broken.npz
show run digits.onnx -i broken.npz
cp good.npy data.xyz
show run digits.onnx -i data.xyz

echo "== files that are not images: exit 4; images that do not fit: exit 2"
show run digits.onnx --image missing.png
show run digits.onnx --image good.npy
head -c 60 images/00.png >cut.png
show run digits.onnx --image cut.png
: >empty.png
show run digits.onnx --image empty.png
show run digits.onnx --image images
show run digits.onnx --image images/00.png --channels rgb
show run digits.onnx --image images/00.png --channels cmyk
show run digits.onnx --image images/00.png --mean 1,2,3
show run digits.onnx --image images/00.png --std 0
show run digits.onnx --image images/00.png --layout chw
show run digits.onnx --image images/00.png --shape image=2x1x8x8
small_graph() { relu_graph 1 1 4 6; }
onnx_model small_graph >small.onnx
show run small.onnx --image images/00.png
show run small.onnx --image images/00.png --resize squeeze
for how in stretch crop pad; do show short -- run small.onnx --image images/00.png --resize "$how" -q; done

echo "== data out of range: exit 1, naming the node"
gather_graph() {
  onnx_node Gather pick 'data indices' y
  onnx_input data 1 3
  onnx_input indices 7 2
  onnx_output y 1 2
}
onnx_model gather_graph >gather.onnx
i64 0 2 | npy '<i8' '(2,)' >inside.npy
i64 0 3 | npy '<i8' '(2,)' >outside.npy
show run gather.onnx --fill data=ones -i indices=inside.npy -q
show run gather.onnx --fill data=ones -i indices=outside.npy -q

echo "== more memory than there is: exit 5, how much of what"
outer_graph() { # [n,1] + [1,m] = [n,m]
  onnx_node Add sum 'x z' y
  onnx_input x 1 n 1
  onnx_input z 1 1 m
  onnx_output y 1 n m
}
onnx_model outer_graph >outer.onnx
buffer_size() { sed -E 's/(largest buffer of) [0-9]+/\1 N/'; }
show buffer_size -- run outer.onnx --fill zeros --dim n=2000000 --dim m=2000000 -q
show buffer_size -- run outer.onnx --fill zeros --dim n=2000000 --dim m=2000000 -q --json
echo "== more than the host has: exit 1; than can be counted: exit 2"
wide_graph() { relu_graph n 1000000; }
onnx_model wide_graph >wide.onnx
show run wide.onnx --fill zeros --dim n=1000000000 -q
show run wide.onnx --fill zeros --dim n=9000000000000000000 -q
finish
