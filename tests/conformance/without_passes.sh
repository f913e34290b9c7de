#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Graph passes make models faster, not right: a sample of ONNX's cases, the digits and the models
# that were generated pass with each pass off in turn. CLG_TEST_SHARE=all takes all of ONNX's cases.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 60))

# The message about a pass that is not there names those that are.
passes=$("$CLTOOL" inspect --plan --disable-pass none-of-this-name "$digits" 2>&1 |
  sed -nE 's/.*there are: ([a-z0-9_, ]+).*/\1/p' | tr -d ,)
[ "$(wc -w <<<"$passes")" -ge 5 ] || { echo "the passes there are could not be determined: '$passes'"; exit 1; }

keep_digits
for pass in $passes; do check_with "without $pass" --disable-pass "$pass"; done
exit "$status"
