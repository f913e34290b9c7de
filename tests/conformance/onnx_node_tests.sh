#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1200
#
# ONNX's own test cases, as the suite's libonnx-testdata has them: none fails, none of those in
# passing.txt that the data has is lost, and nine of ten are supported. passing.txt is made from the
# data of Debian 12; when more pass, again:
#   cltool verify DATA | sed -n 's/^pass  //p' | sort >tests/conformance/passing.txt
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
printf '%s\n' "${all[@]##*/}" | LC_ALL=C sort -u >"$work/there"
LC_ALL=C sort -u "$CLG_SOURCE_DIR/tests/conformance/passing.txt" | LC_ALL=C comm -12 - "$work/there" >"$work/must_pass"
[ ${#left_out[@]} -eq 0 ] || echo "outdated_data.txt leaves out: ${left_out[*]}"
"$CLTOOL" verify -q --expect-pass "$work/must_pass" "${all[@]}" >"$work/out" || status=1
cat "$work/out"
passed=$(sed -nE '$s/^([0-9]+) passed.*/\1/p' "$work/out")
if [ "${passed:-0}" -lt $((${#all[@]} * 9 / 10)) ]; then
  echo "these are too few of ${#all[@]}"
  status=1
fi
exit "$status"
