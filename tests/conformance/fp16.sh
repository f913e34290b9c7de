#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With precision fp16, cases of ONNX's come as near as float16 is fine, and no dtype of an output
# changes: a quarter of them; CLG_TEST_SHARE=all takes all.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every 4
summary=$("$CLTOOL" verify -q --precision fp16 --rtol 2e-2 --atol 2e-2 "${cases[@]}" | tee "$work/out" | tail -n 1)
echo "$summary"
grep -qE '^[1-9][0-9]{2,} passed, 0 failed' <<<"$summary" && exit
grep '^FAIL' "$work/out"
exit 1
