#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1200
#
# ONNX's own test cases, as Debian's libonnx-testdata has them: none fails, and none of those in passing.txt is lost.
# When more pass, passing.txt is made anew:
#   cltool verify DATA | sed -n 's/^pass  //p' | sort >tests/conformance/passing.txt
set -u
data=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
if [ ! -d "$data" ]; then
  echo "$data is not there: ONNX's test cases were not run"
  exit 77
fi
"$CLTOOL" verify -q --expect-pass "$CLG_SOURCE_DIR/tests/conformance/passing.txt" "$data"
