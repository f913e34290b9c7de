#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool gradient: outputs and losses, beside numbers that a script computes; --check, which finds
# a kernel that is wrong; what is refused.
# ctest: timeout 900
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
reference() { python "$CLG_SOURCE_DIR/tests/cli/gradient.py" "$@"; }
# Errors of --check differ between devices.
check() { short | sed -E 's/ [0-9][^ ]* (0\.0+5)( |$)/ N \1\2/'; }

# y = tanh(x w1 + b1) w2
mlp_graph() {
  onnx_node MatMul first 'x w1' a
  onnx_node Add bias 'a b1' b
  onnx_node Tanh bend b h
  onnx_node MatMul second 'h w2' y
  pb_text 2 mlp
  f32 3f000000 bf000000 3e800000 3f800000 bf400000 3f400000 >w1 # .5 -.5 .25 1 -.75 .75
  f32 3dcccccd be4ccccd >b1                                     # .1 -.2
  f32 3f800000 bf800000 3f000000 40000000 3e800000 bf000000 >w2 # 1 -1 .5 2 .25 -.5
  onnx_floats w1 '3 2' w1
  onnx_floats b1 2 b1
  onnx_floats w2 '2 3' w2
  onnx_input x 1 N 3
  onnx_output y 1 N 3
}
onnx_model mlp_graph >mlp.onnx
f32 3f800000 bf800000 3f000000 00000000 3e800000 bf400000 | npy '<f4' '(2, 3)' >x.npy
i64 2 0 | npy '<i8' '(2,)' >classes.npy
f32 3f800000 00000000 3f000000 3e800000 3f800000 bf800000 | npy '<f4' '(2, 3)' >values.npy

echo "== the sum of an output"
show short -- gradient mlp.onnx -i x.npy -o sum
ls sum
reference sum sum
show gradient mlp.onnx -i x.npy -o sum -q
show json_keys -- gradient mlp.onnx -i x.npy -o sum -q --json --force
echo "== losses"
for loss in cross-entropy nll; do
  show short -- gradient mlp.onnx -i x.npy --loss $loss --target classes.npy -o $loss -q
  reference $loss $loss classes.npy
done
for loss in bce-with-logits mse l1 huber; do
  show short -- gradient mlp.onnx -i x.npy --loss $loss --target y=values.npy -o $loss -q
  reference $loss $loss values.npy
done
show short -- gradient mlp.onnx -i x.npy --loss huber:delta=0.5 --target values.npy --wrt b1 -q
show short -- gradient mlp.onnx -i x.npy --loss cross-entropy:label_smoothing=0.1 --target classes.npy --wrt b1 -q
echo "== with respect to"
show short -- gradient mlp.onnx -i x.npy --wrt 'w?' -q
show short -- gradient mlp.onnx -i x.npy --of h --wrt h --wrt b1 --wrt w2 -q
show gradient mlp.onnx -i x.npy --wrt 'v*' -q
show gradient mlp.onnx -i x.npy --wrt v -q

echo "== --check"
show check -- gradient mlp.onnx -i x.npy --check -q
show check -- gradient mlp.onnx -i x.npy --check -q --loss mse --target values.npy --wrt w1 --kernels simt
show check -- gradient mlp.onnx --check --wrt w2
show json_keys -- gradient mlp.onnx -i x.npy --check -q --json
echo "== near a kink nothing is checked"
onnx_model relu_graph 2 >relu.onnx
show check -- gradient relu.onnx --fill zeros --check -q
f32 3f800000 c0000000 | npy '<f4' '(2,)' >two.npy
show check -- gradient relu.onnx -i two.npy --check -q
echo "== a kernel that is wrong"
# that of the gradient of Tanh: 1 + y * y in place of 1 - y * y
(
  export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_wrong.so${OPENCL_LAYERS:+:$OPENCL_LAYERS} CLG_WRONG_DRIVER=.1
  export CLG_WRONG_IN='r16 = r0 * r0' CLG_WRONG_FROM='r1 - r16' CLG_WRONG_TO='r1 + r16' CLG_SELFTEST=off
  show check -- gradient mlp.onnx -i x.npy --check -o wrong -q
  reference wrong sum | sed 's/WRONG by.*/WRONG/'
)

echo "== digits: the last layers"
digits digits.onnx heldout.npy heldout_labels.npy
show short -- gradient digits.onnx -i heldout.npy --loss cross-entropy --target heldout_labels.npy --wrt '11.*' -o digits
ls digits
show check -- gradient digits.onnx -i heldout.npy --loss cross-entropy --target heldout_labels.npy --wrt '11.*' \
  --wrt /9/Relu_output_0 --check -q

echo "== digits: all nodes"
"$CLTOOL" gradient digits.onnx -i heldout.npy --loss cross-entropy --target heldout_labels.npy --check -q \
  2>&1 | sed -nE 's/^[0-9]+ ok, (0 FAILED), .*/\1/p'

echo "== names of values are not paths"
names_graph() {
  onnx_node Mul '' '../../x C:w' y
  pb_text 2 names
  f32 3f800000 c0000000 >w
  onnx_floats C:w 2 w
  onnx_input ../../x 1 2
  onnx_output y 1 2
}
onnx_model names_graph >names.onnx
show gradient names.onnx -i two.npy -o named
ls -A named

echo "== several outputs, and what has none"
two_graph() {
  onnx_node Exp '' x y
  onnx_node Neg '' x z
  onnx_node Shape '' x s
  pb_text 2 two
  onnx_input x 1 2
  onnx_output y 1 2
  onnx_output z 1 2
  onnx_output s 7 1
}
onnx_model two_graph >two.onnx
show gradient two.onnx -i two.npy
show gradient two.onnx -i two.npy --of z -q
show gradient two.onnx -i two.npy --of s -q
show gradient two.onnx -i two.npy --of v -q

echo "== a gradient that cannot pass"
steps_graph() {
  onnx_node QuantizeLinear there 'x s' q
  onnx_node DequantizeLinear back 'q s' p
  onnx_node Exp '' p y
  pb_text 2 steps
  f32 3f000000 >s
  onnx_floats s '' s
  onnx_input x 1 2
  onnx_output y 1 2
}
onnx_model steps_graph >steps.onnx
show gradient steps.onnx -i two.npy -o none -q
show gradient steps.onnx -i two.npy -q --wrt x --json
[ -e none ] || echo "no folder was made"

echo "== usage"
show gradient mlp.onnx -q
show gradient mlp.onnx -i x.npy --loss hinge --target values.npy -q
show gradient mlp.onnx -i x.npy --loss mse -q
show gradient mlp.onnx -i x.npy --target values.npy -q
show gradient mlp.onnx -i x.npy --loss output --target values.npy -q
show gradient mlp.onnx -i x.npy --loss output -q
show gradient mlp.onnx -i x.npy --loss mse --target values.npy --of y -q
show gradient mlp.onnx -i x.npy --loss mse --target v=values.npy -q
show gradient mlp.onnx -i x.npy --loss mse --target classes.npy -q
show gradient mlp.onnx -i x.npy --loss mse --target absent.npy -q
f32 3f800000 3f800000 | npy '<f4' '(2, 1)' >column.npy
show gradient mlp.onnx -i x.npy --loss mse --target column.npy -q
i64 0 1 2 | npy '<i8' '(3,)' >three.npy
show gradient mlp.onnx -i x.npy --loss nll --target three.npy -q
i64 2 3 | npy '<i8' '(2,)' >high.npy
show gradient mlp.onnx -i x.npy --loss nll --target high.npy -q
show gradient digits.onnx -i heldout.npy --loss nll --target heldout_labels.npy -q
show gradient mlp.onnx -i x.npy -o out.npy -q
finish
