#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ONNX's test cases through ONNX Runtime, which may compute no node itself: all that `cltool verify`
# passes (conformance.onnx_node_tests) pass, but for those in not_through_onnxruntime.txt. One in
# eight by default, all with CLG_TEST_SHARE=all.
# shellcheck disable=SC2154 # variables of support.bash and cases.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
# shellcheck source=/dev/null
source "$CLG_SOURCE_DIR/tests/conformance/cases.bash"
take_every 8
grep -v '^#' "$here/not_through_onnxruntime.txt" | LC_ALL=C sort -u >"$work/not"
LC_ALL=C sort -u "$CLG_SOURCE_DIR/tests/conformance/passing.txt" | LC_ALL=C comm -23 - "$work/not" >"$work/must_pass"
"$python" "$here/verify.py" "$library" --strict --expect-pass "$work/must_pass" "${cases[@]}"
