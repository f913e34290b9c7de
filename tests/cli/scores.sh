#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Values of small outputs, --top on outputs that are scores of classes and on others, --labels.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

# same_model NAME DTYPE DIM...: y is x
same_graph() {
  onnx_node Identity same x y
  onnx_input x "$@"
  onnx_output y "$@"
}
echo "== values of small outputs"
onnx_model same_graph 1 N M >floats.onnx
onnx_model same_graph 7 N >integers.onnx
onnx_model same_graph 9 N >bools.onnx
onnx_model same_graph 1 >scalar.onnx
f32 3f800000 c0000000 7f800000 7fc00000 3e000000 49742410 | npy '<f4' '(2, 3)' >x.npy
show run floats.onnx -i x.npy -q
"$CLTOOL" run floats.onnx -i x.npy -q --json | sed -n '/"values"/,$p' | tr -d ' \n'
echo
i64 9007199254740993 -1 | npy '<i8' '(2,)' >wide.npy
show run integers.onnx -i wide.npy -q
"$CLTOOL" run integers.onnx -i wide.npy -q --json | sed -n '/"values"/,$p' | tr -d ' \n'
echo
printf '\1\0' | npy '|b1' '(2,)' >bools.npy
show run bools.onnx -i bools.npy -q
f32 40490fdb | npy '<f4' '()' >pi.npy
show run scalar.onnx -i pi.npy -q
echo "== 12 elements are few, 13 and none are not"
for n in 0 12 13; do
  "$CLTOOL" run floats.onnx --fill ones --shape x=1x$n -q | tail -n +3
done

echo "== outputs that are not scores of classes"
two_graph() {
  onnx_node Identity scores x y
  onnx_node Shape shape x size
  onnx_input x 1 N 3
  onnx_output y 1 N 3
  onnx_output size 7 2
}
onnx_model two_graph >two.onnx
show run two.onnx -i x.npy --top 1
show run two.onnx -i x.npy --top 1 -q --json
onnx_model same_graph 1 N C H W >four.onnx
ones() { show run "$1.onnx" --fill ones --shape "x=$2" --top 2 -q; }
ones four 2x3x1x1
ones four 2x3x4x1
ones four 2x1x1x1
ones floats 4x1
ones floats 0x3
ones floats 2x0
ones scalar scalar
ones integers 3
# --dump does not take part
show run two.onnx -i x.npy --top 1 --dump scores -q

echo "== labels are as many as classes"
printf 'ant\nbee\n' >two.txt
printf 'ant\r\nbee\r\n\r\n' >three.txt
printf 'ant\nbee\ncat\ndog\n' >four.txt
printf 'a\nb\nc\nd\ne\n' >five.txt
for labels in two three four five; do show run two.onnx -i x.npy --top 2 --labels $labels.txt -q; done
show run two.onnx -i x.npy --labels three.txt -q
show run two.onnx -i x.npy --top 1 --labels none.txt -q
finish
