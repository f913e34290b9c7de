#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool diff: runs that agree, a node that is wrong, what is wrong only when fused, and what is
# refused.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy

# What differs between machines: numbers, and where they are largest.
places() {
  sed -E -e "s/largest difference [^ ]+ in '[^']*'/largest difference N in 'VALUE'/" \
    -e "s/all of them the same/largest difference N in 'VALUE'/" \
    -e 's/[0-9]+ of ([0-9]+) elements differ.*/N of \1 elements differ/'
}

passes() { sed 's/there are: .*/there are: PASSES/'; }

echo "== kernels of both classes agree"
show places -- diff digits.onnx -i heldout.npy --against @simt
show places -- diff digits.onnx --fill random:1 --kernels simt --against cpu@simd,no-blas -q
show places -- diff digits.onnx -i heldout.npy --against @without-epilogue,without-pointwise -q

echo "== bits that fusion alone changes"
show places -- diff digits.onnx --fill random:1 --against @simd --rtol 0 --atol 0 -q

# y = (Relu(x first)) second + shift, with one number that can be made wrong
chain_graph() {
  onnx_node MatMul first 'x a' p
  onnx_node Relu bend p q
  onnx_node MatMul second 'q b' r
  onnx_node Add shift 'r c' y
  pb_text 2 chain
  f32 3f800000 40000000 40400000 bf800000 >a
  f32 3f000000 "$1" 40800000 3f800000 >b
  f32 3f800000 3f000000 >c
  onnx_floats a '2 2' a
  onnx_floats b '2 2' b
  onnx_floats c 2 c
  onnx_input x 1 1 2
  onnx_output y 1 1 2
}
onnx_model chain_graph 40000000 >right.onnx
onnx_model chain_graph 40000100 >wrong.onnx # 2.00006 in place of 2
f32 3f800000 40000000 | npy '<f4' '(1, 2)' >x.npy

echo "== a weight has changed: its node is named"
show run right.onnx -i x.npy --dump all -o values -q
show diff right.onnx -i x.npy --reference values
show diff wrong.onnx -i x.npy --reference values -q --rtol 1e-6 --atol 1e-6
show diff wrong.onnx -i x.npy --reference values -q -v
show diff wrong.onnx -i x.npy --reference values -q --json --rtol 1e-6 --atol 1e-6

echo "== only some values are there"
rm values/p.npy values/q.npy values/r.npy
show diff wrong.onnx -i x.npy --reference values -q --rtol 1e-6 --atol 1e-6
rm values/y.npy
show diff wrong.onnx -i x.npy --reference values -q

echo "== a reference in float64"
printf '\0\0\0\0\0\0\14\100\0\0\0\0\0\0\54\100' | npy '<f8' '(1, 2)' >values/r.npy # 3.5 14
show diff right.onnx -i x.npy --reference values -q

echo "== another shape"
f32 3f800000 40000000 | npy '<f4' '(2,)' >values/r.npy
show diff right.onnx -i x.npy --reference values -q

echo "== usage"
show diff right.onnx -i x.npy -q
show diff right.onnx -i x.npy -q --against @simt --reference values
show diff right.onnx -i x.npy -q --against @warp
show passes -- diff right.onnx -i x.npy -q --against @without-nothing
show diff right.onnx -i x.npy -q --against no-such-device
show diff right.onnx -i x.npy -q --reference nowhere
show diff absent.onnx -q --against @simt
finish
