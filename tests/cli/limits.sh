#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --limits: a model that exceeds one is refused, exit 1, with the limit's name; wrong limits, exit 2.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx

# Sizes, and nodes after fusion, differ between devices; what is too much, a tensor or a table of
# names, between versions.
bytes() {
  sed -E -e "s/(tensor '[a-z0-9_.]+': )?[0-9]+ bytes more/N bytes more/" \
    -e 's/[0-9]{2,}/N/g' -e 's/error: .*: the plan has/error: NODE: the plan has/'
}

echo "== enough"
show short -- run digits.onnx --fill zeros --limits untrusted --quiet
show short -- run digits.onnx --fill zeros --limits memory=1g,steps=1000,compile=500s,run=500s --quiet
show short -- run digits.onnx --fill zeros --limits untrusted,memory=2G,steps=1000 --quiet

echo "== not enough"
show bytes -- run digits.onnx --fill zeros --quiet --limits memory=10k
show bytes -- run digits.onnx --fill zeros --quiet --limits untrusted,steps=1
show bytes -- inspect digits.onnx --limits memory=10k
show bytes -- run digits.onnx --fill zeros --quiet --limits memory=10k --json

echo "== a constant of 100 MB in a file of some bytes"
huge_graph() {
  pb_message 1 onnx_node_fields ConstantOfShape fill n y
  pb_message 5 huge_shape
  onnx_output y 1
}
huge_shape() { # n = [25000000]: a buffer that any OpenCL device has
  pb_int 1 1
  pb_int 2 7
  pb_text 8 n
  pb_int 7 25000000
}
onnx_model huge_graph >huge.onnx
show bytes -- run huge.onnx --quiet --limits untrusted,memory=64m

echo "== wrong"
show run digits.onnx --limits
show run digits.onnx --limits 1g
show run digits.onnx --limits size=1g
show run digits.onnx --limits memory=1x
show run digits.onnx --limits memory=0
show run digits.onnx --limits steps=-1
show run digits.onnx --limits run=10
show run digits.onnx --limits run=ms
show run digits.onnx --limits compile=10m
show devices --limits untrusted

finish
