#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Models that are broken: exit 4 and a message, for every one.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx

echo "== bytes that are not a model"
show run missing.onnx --fill zeros
show run . --fill zeros
: >empty.onnx
show run empty.onnx --fill zeros
head -c 1000 digits.onnx >truncated.onnx
show run truncated.onnx --fill zeros
show inspect truncated.onnx --json
head -c 60000 digits.onnx >truncated.onnx
show run truncated.onnx --fill zeros
# The same bytes everywhere, and no pattern in them.
awk 'BEGIN { x = 12345; for (i = 0; i < 5000; i++) { x = (x * 1103515245 + 12345) % 2147483648; printf "%c", 33 + int(x / 65536) % 90 } }' >random.onnx
show run random.onnx --fill zeros

echo "== nested too deeply"
deep_attribute() { # a graph within a graph within ...
  cp deep.graph inner.graph
  {
    pb_text 1 body
    pb_bytes 6 inner.graph
    pb_int 20 5
  } >attribute
  {
    pb_text 4 If
    pb_text 2 y
    pb_bytes 5 attribute
  } >node
  pb_bytes 1 node >deep.graph
}
: >deep.graph
for _ in $(seq 80); do deep_attribute; done
deep_graph() {
  cat deep.graph
  onnx_output y 1 1
}
onnx_model deep_graph >deep.onnx
show run deep.onnx --fill zeros
# A message in a message in a message, a hundred thousand times, as bytes.
head -c 200000 /dev/zero | tr '\0' ':' >colons.onnx
show run colons.onnx --fill zeros

echo "== external data"
external_graph() {
  onnx_node Add sum 'x w' y
  onnx_external w 4 "$location"
  onnx_input x 1 4
  onnx_output y 1 4
}
printf 'secret secret secret' >"$WORK/.test/secret"
for location in weights.bin ../weights.bin /etc/passwd 'a/../../b' 'C:\weights.bin' '' link.bin short.bin; do
  mkdir -p model
  ln -sf "$WORK/.test/secret" model/link.bin
  printf 1234 >model/short.bin
  onnx_model external_graph >model/external.onnx
  echo "-- '$location'"
  show run model/external.onnx --fill zeros
done
f32 3f800000 40000000 40400000 40800000 >model/weights.bin
location=weights.bin
onnx_model external_graph >model/external.onnx
show run model/external.onnx --fill zeros -q
rm model/weights.bin
show inspect model/external.onnx -q

echo "== invalid graphs"
cycle_graph() {
  onnx_node Add first 'x b' a
  onnx_node Relu second a b
  onnx_input x 1 4
  onnx_output b 1 4
}
onnx_model cycle_graph >cycle.onnx
show run cycle.onnx --fill zeros
orphan_graph() {
  onnx_node Add sum 'x nowhere' y
  onnx_input x 1 4
  onnx_output y 1 4
}
onnx_model orphan_graph >orphan.onnx
show run orphan.onnx --fill zeros
twice_graph() {
  onnx_node Relu first x y
  onnx_node Abs second x y
  onnx_input x 1 4
  onnx_output y 1 4
}
onnx_model twice_graph >twice.onnx
show run twice.onnx --fill zeros
same_inputs_graph() {
  onnx_node Relu first x y
  onnx_input x 1 4
  onnx_input x 1 4
  onnx_output y 1 4
}
onnx_model same_inputs_graph >same_inputs.onnx
show run same_inputs.onnx --fill zeros
no_output_graph() {
  onnx_node Relu first x y
  onnx_input x 1 4
  onnx_output z 1 4
}
onnx_model no_output_graph >no_output.onnx
show run no_output.onnx --fill zeros

echo "== dimensions"
for dims in '-3 4' '4000000000 4000000000 4000000000' '9223372036854775807 2' '1 1 1 1 1 1 1 1 1'; do
  # shellcheck disable=SC2086
  dims_graph() { relu_graph $dims; }
  onnx_model dims_graph >dims.onnx
  show run dims.onnx --fill zeros
done
f32 3f800000 >one
lying_graph() { # an initializer of 1,000 elements with 4 bytes
  onnx_node Add sum 'x w' y
  onnx_floats w 1000 one
  onnx_input x 1 1
  onnx_output y 1 1
}
onnx_model lying_graph >lying.onnx
show run lying.onnx --fill zeros
huge_graph() {
  onnx_node Add sum 'x w' y
  onnx_floats w '4000000000 4000000000 4000000000' one
  onnx_input x 1 1
  onnx_output y 1 1
}
onnx_model huge_graph >huge.onnx
show run huge.onnx --fill zeros
mismatch_graph() { # shapes that do not go together
  onnx_node Add sum 'x z' y
  onnx_input x 1 4
  onnx_input z 1 5
  onnx_output y 1 4
}
onnx_model mismatch_graph >mismatch.onnx
show run mismatch.onnx --fill zeros
finish
