#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With precision fp16, cases of ONNX's come as near as float16 is fine, and no dtype of an output changes: a quarter of
# them; CLG_TEST_SHARE=all takes all.
set -u
data=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$data" ]; then
  echo "$data is not there: ONNX's test cases were not run"
  exit 77
fi
find "$data" -name model.onnx -printf '%h\n' | sort >"$work/all"
every=4
[ "${CLG_TEST_SHARE:-}" = all ] && every=1
mapfile -t cases < <(awk -v every="$every" 'NR % every == 0' "$work/all")
summary=$("$CLTOOL" verify -q --precision fp16 --rtol 2e-2 --atol 2e-2 "${cases[@]}" | tee "$work/out" | tail -n 1)
echo "$summary"
grep -qE '^[1-9][0-9]{2,} passed, 0 failed' <<<"$summary" && exit
grep '^FAIL' "$work/out"
exit 1
