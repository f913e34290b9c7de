#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool inspect --html and profile --html: pages that need nothing beside them, also for hostile
# names.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
page() { python "$CLG_SOURCE_DIR/tests/cli/html_page.py" "$@" 2>&1; }
# Steps are the planner's choice.
without_rows() { sed -E 's/^rows [0-9]+/rows N/'; }

echo "== inspect"
"$CLTOOL" inspect digits.onnx --html model.html -q >/dev/null
page model.html /0/Conv 'float32 [1,16,8,8]' 'float32 [batch,1,8,8]'
show inspect digits.onnx --html model.html -q
show inspect digits.onnx --html no-folder/model.html -q
"$CLTOOL" inspect digits.onnx --dim batch=7 --html model.html --force -q >/dev/null && page model.html 'float32 [7,10]' >/dev/null && echo "shapes of --dim"

echo "== profile"
"$CLTOOL" profile digits.onnx --runs 2 --html profile.html -q >/dev/null
page profile.html /0/Conv 'first run' 'GFLOP/s in fp32' | without_rows
show profile digits.onnx --html profile.html -q

echo "== hostile names"
hostile='</script><script>alert(1)</script>'
hostile_graph() {
  onnx_node Relu "$hostile" x '"><b>y'
  onnx_node Exp '' '"><b>y' "z'onload=f()"
  pb_text 2 "</style>"
  onnx_input x 1 '<i>dim' 4
  onnx_output "z'onload=f()" 1 '<i>dim' 4
}
onnx_model hostile_graph >'a<b>.onnx'
"$CLTOOL" inspect 'a<b>.onnx' --html hostile.html -q >/dev/null
page hostile.html "$hostile" '"><b>y' "z'onload=f()" '<i>dim' 'a<b>.onnx'
"$CLTOOL" profile 'a<b>.onnx' --runs 1 --html hostile_profile.html -q >/dev/null
page hostile_profile.html "$hostile" '<i>dim' 'Profile of a<b>.onnx' | without_rows

echo "== operators that are not supported"
missing_graph() {
  onnx_node Frobnicate first x y
  onnx_input x 1 2
  onnx_output y 1 2
}
onnx_model missing_graph >missing.onnx
"$CLTOOL" inspect missing.onnx --html missing.html -q >/dev/null 2>&1
page missing.html Frobnicate 'not supported'
finish
