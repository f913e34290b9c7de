#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Devices of other sizes than any here: PoCL behind layers/opencl_device.c, with vectors and numbers of units that nobody expects
# and groups of few work-items, runs a sample of ONNX's cases and the digits. CLG_TEST_SHARE=all takes all cases.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 30))
digits=$CLG_SOURCE_DIR/examples/digits/digits.onnx
export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_device.so

status=0
export CLG_CACHE_DIR=$work/own
"$CLTOOL" run -q "$digits" --fill random:1 -o "$work/expected" >/dev/null || exit 1
expected=("$work"/expected/*.npy)
name=$(basename "${expected[0]}" .npy)
while read -r class floats units items; do
  export CLG_DEVICE_FLOATS=$floats CLG_DEVICE_UNITS=$units CLG_DEVICE_ITEMS=$items
  export CLG_CACHE_DIR=$work/$class.$items # what a kernel was seen to do holds for one device
  device="$class, vectors of $floats, $units units, groups of $items"
  "$CLTOOL" run -q "$digits" --kernels "$class" --fill random:1 --expect "$name=${expected[0]}" --rtol 1e-3 >/dev/null ||
    { echo "$device: another result of the digits"; status=1; }
  summary=$("$CLTOOL" verify -q --list-skipped --kernels "$class" "${cases[@]}" | tee "$work/out" | tail -n 1)
  echo "$device: $summary"
  if ! grep -qE '^[1-9][0-9]* passed, 0 failed' <<<"$summary" || grep -q CL_INVALID_WORK "$work/out"; then
    grep -E '^FAIL|CL_INVALID_WORK' "$work/out"
    status=1
  fi
done <<'DEVICES'
wide 5 3 7
simt 16 2 100
simt 1 5 17
simt 3 7 1
DEVICES
exit $status
