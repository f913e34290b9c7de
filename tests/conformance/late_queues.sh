#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# ONNX's cases and the digits on PoCL under layers/opencl_delay.c, which runs the commands of some
# queues as late as OpenCL allows: of the context's queue for uploads, of all queues, of every
# second one. A sample of the cases; CLG_TEST_SHARE=all takes all of them.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 60))
keep_digits

# Probes have queues, too: with their results in the store, queue 0 of the next process is the
# context's.
check_with "as it is"
own=$summary
export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_delay.so CLG_DELAY_REPORT=1
for which in 0 all even odd; do
  export CLG_DELAY=$which
  check_with "late: $which" 2>"$work/err"
  cat "$work/err"
  [ "$summary" = "$own" ] || { echo "as it is: $own"; status=1; }
  if grep -q 'flush: [1-9]' "$work/err" || [ "$(grep -c '^late commands: [1-9]' "$work/err")" -lt 2 ]; then
    echo "late: $which: no command was late, or one was waited for that was never flushed"
    status=1
  fi
done
exit "$status"
