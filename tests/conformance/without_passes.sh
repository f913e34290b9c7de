#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Graph passes make models faster, not right: a sample of ONNX's cases, the digits and the models that were generated pass with
# each pass off in turn. CLG_TEST_SHARE=all takes all of ONNX's cases.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 60))

# The message about a pass that is not there names those that are.
digits=$CLG_SOURCE_DIR/examples/digits/digits.onnx
passes=$("$CLTOOL" inspect --plan --disable-pass none-of-this-name "$digits" 2>&1 |
  sed -nE 's/.*there are: ([a-z, ]+).*/\1/p' | tr -d ,)
[ "$(wc -w <<<"$passes")" -ge 5 ] || { echo "the passes there are could not be told: '$passes'"; exit 1; }

status=0
"$CLTOOL" run -q "$digits" --fill random:1 -o "$work/expected" >/dev/null || exit 1
expected=("$work"/expected/*.npy)
name=$(basename "${expected[0]}" .npy)
for pass in $passes; do
  "$CLTOOL" run -q "$digits" --fill random:1 --disable-pass "$pass" --expect "$name=${expected[0]}" --rtol 1e-3 \
    >/dev/null || { echo "digits without the pass $pass: another result"; status=1; }
  summary=$("$CLTOOL" verify -q --disable-pass "$pass" "${cases[@]}" | tee "$work/out" | tail -n 1)
  echo "without $pass: $summary"
  if ! grep -qE '^[1-9][0-9]* passed, 0 failed' <<<"$summary"; then
    grep '^FAIL' "$work/out"
    status=1
  fi
done
exit $status
