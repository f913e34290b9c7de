#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# ONNX's node cases on other implementations of OpenCL than PoCL: a fifth of them on rusticl's
# llvmpipe, the same fifth on Oclgrind, which looks for accesses outside of buffers and for data
# races, and a few of these for reads of what nobody wrote. CLG_TEST_SHARE=all takes all cases for
# the first two.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
mapfile -t all < <(printf '%s\n' "${all[@]}" | grep "^$data/node/")
take_every 5

# check WHAT LEAST COMMAND...: at least so many cases pass, none fails, and Oclgrind's log is empty.
check() {
  local what=$1 least=$2 summary passed
  shift 2
  : >"$work/log"
  "$@" >"$work/out" 2>"$work/err"
  summary=$(tail -n 1 "$work/out")
  passed=${summary%% passed*}
  if [[ $summary != *" 0 failed"* ]] || [ "$passed" -lt "$least" ] 2>/dev/null || [ -s "$work/log" ]; then
    echo "$what: $summary"
    grep '^FAIL' "$work/out"
    head -n 20 "$work/log"
    [ -n "$summary" ] || cat "$work/err"
    status=1
    return
  fi
  total=$((total + passed))
}

total=0
RUSTICL_ENABLE=llvmpipe check rusticl $((${#cases[@]} * 9 / 10)) "$CLTOOL" verify -q -d rusticl "${cases[@]}"
echo "rusticl: $total cases of ${#cases[@]} pass, the others are not supported there"
if ! command -v oclgrind >/dev/null; then
  echo "Oclgrind: skipped, it is not installed"
  exit "$status"
fi
total=0
check "Oclgrind" $((${#cases[@]} * 9 / 10)) \
  oclgrind --data-races --log "$work/log" "$CLTOOL" verify -q -d oclgrind "${cases[@]}"
echo "Oclgrind: $total cases pass without a bad access or a race"

# Its shadow of what was written knows no `freeze`, which optimising makes, and does not forget
# freed buffers: no optimising, a process for each case, and no self-tests, since a buffer of the run
# may take the place of one that a self-test has freed, and stays unwritten for it whatever a kernel
# writes there (even a constant).
CLG_CACHE_DIR=$work/store
export CLG_CACHE_DIR
total=0
few=0
for ((i = 0; i < ${#cases[@]} && i < 185; i += 5)); do
  name=$(basename "${cases[i]}")
  CLG_SELFTEST=off check "Oclgrind, $name" 0 oclgrind --build-options -cl-opt-disable --uninitialized \
    --log "$work/log" "$CLTOOL" verify -q -d oclgrind "${cases[i]}"
  few=$((few + 1))
done
echo "Oclgrind: $total cases of $few read nothing that was not written"
[ "$total" -ge $((few * 8 / 10)) ] || { echo "these are too few"; status=1; }
exit "$status"
