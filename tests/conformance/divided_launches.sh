#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Launches that take longer than allowed: PoCL under layers/opencl_device.c with one unit of 1 MHz,
# by whose estimated rates launches of some thousand operations take longer than the shortest limit,
# so that they are divided (decision 43). A sample of ONNX's cases and the digits pass; outputs of
# the digits have the same bits. CLG_TEST_SHARE=all takes all cases.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 60))
keep_digits
export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_device.so
export CLG_DEVICE_UNITS=1 CLG_DEVICE_MHZ=1 CLG_CACHE_DIR=$work/cache

# Writes the digits' outputs, and counts launches that were divided.
run_digits() { # FOLDER OPTION...
  local folder=$1
  shift
  "$CLTOOL" run -vv "$digits" --fill random:1 -o "$work/$folder" "$@" >/dev/null 2>"$work/log" ||
    status=1
  n_divided=$(grep -c 'is divided into' "$work/log")
}

for class in simd simt; do
  check_with "$class, whole" --kernels "$class" --max-launch-ms none
  whole=$summary
  check_with "$class, divided" --kernels "$class" --max-launch-ms 1
  [ "$summary" = "$whole" ] || { echo "$class, whole: $whole"; status=1; }
  run_digits "whole.$class" --kernels "$class"
  [ "$n_divided" -eq 0 ] || { echo "$class: divided without a limit"; status=1; }
  run_digits "divided.$class" --kernels "$class" --max-launch-ms 1
  [ "$n_divided" -gt 0 ] || { echo "$class: nothing was divided"; status=1; }
  for file in "$work/whole.$class"/*.npy; do
    cmp "$file" "$work/divided.$class/${file##*/}" || status=1
  done
done
exit "$status"
