#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What is suggested for misspelt commands, options, words and names.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
npy '<f4' '(1, 1, 8, 8)' < <(head -c 256 /dev/zero) >x.npy

show prifile
show help prifile
show run digits.onnx --devcie gpu
show run digits.onnx --devcie=gpu
show run digits.onnx --mesure
show run digits.onnx --precision fp6
show diff digits.onnx --against @fp6
show run digits.onnx --header ys
show train digits.onnx --on-nan stopp
show new mpl 1,2 -o never.onnx
show cache wram digits.onnx
show run digits.onnx -i imge=x.npy
show run digits.onnx -i x.npy --shape imag=1x1x8x8
show run digits.onnx -i x.npy --dim bacth=1
show run digits.onnx -i x.npy --expect probability=x.npy
show run digits.onnx -i x.npy --dump /1/Relu
show run digits.onnx -i x.npy --dump relu
show run digits.onnx -i x.npy --dump nothing-like-it
show predict digits.onnx -i x.npy -o probability=y.npy
show run digits.onnx -i x.npy --prefer gemm_smid
show inspect digits.onnx --plan --prefer nothing-like-it
# The last digits depend on the device's vectors.
three_digits() { sed -E 's/([0-9]\.[0-9]{3})[0-9]*/\1/g'; }
show three_digits -- run digits.onnx -i x.npy --prefer conv_direct --prefer qconv -q
show gradient digits.onnx -i x.npy --of probability
show gradient digits.onnx -i x.npy --wrt imgae
finish
