#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Devices of other sizes than any here: PoCL under layers/opencl_device.c, with vectors and numbers
# of units that nobody expects and groups of few work-items, runs a sample of ONNX's cases and the
# digits. CLG_TEST_SHARE=all takes all cases, I/N two of the four devices.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 30))
keep_digits

# What is not supported on the device as it is, and no more, may be skipped.
declare -A own
for class in simd simt; do
  check_with "$class, as it is" --kernels "$class"
  own[$class]=$summary
done
export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_device.so
n_rows=0
while read -r class floats units items; do
  n_rows=$((n_rows + 1))
  takes_row $n_rows || continue
  export CLG_DEVICE_FLOATS=$floats CLG_DEVICE_UNITS=$units CLG_DEVICE_ITEMS=$items
  export CLG_CACHE_DIR=$work/$class.$items # what a kernel was seen to do holds for one device
  check_with "$class, vectors of $floats, $units units, groups of $items" --kernels "$class"
  [ "$summary" = "${own[$class]}" ] || { echo "as it is: ${own[$class]}"; cat "$work/out"; status=1; }
done <<'DEVICES'
simd 5 3 7
simt 16 2 100
simt 1 5 17
simt 3 7 1
DEVICES
exit "$status"
