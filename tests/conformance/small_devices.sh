#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 2400
#
# Small devices: PoCL under layers/opencl_device.c, which reports limits and enforces them, runs a
# sample of ONNX's cases, the digits and the folder of models, where it is there. Each must be
# right, or be refused with a message that names a limit. With limits that are enforced and not
# reported, work must fail: the layer enforces what the library respects. CLG_TEST_SHARE=all takes
# all cases, and the models on each device; I/N takes the first device, a quarter of the models, two
# of the other devices and, for an even I, the self-test.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every $((${#all[@]} / 20))
keep_digits
models=${CLG_TEST_MODELS:-/nowhere}
given=() # those of the folder: a quarter of them where CLG_TEST_SHARE is I/N
n_models=0
for folder in "$models"/*/; do
  [ -d "$folder" ] || continue
  n_models=$((n_models + 1))
  if [[ ${CLG_TEST_SHARE:-all} == */* ]] && [ $((n_models % 4)) != $((${CLG_TEST_SHARE%/*} % 4)) ]; then
    continue
  fi
  given+=("$folder")
done
limit='float64|largest (single )?buffer|local memory'

# ROW CLASS ASSIGNMENT...
rows() {
  cat <<'ROWS'
smallest simt CLG_DEVICE_ALLOC=128M CLG_DEVICE_MEMORY=512M CLG_DEVICE_LOCAL=16K CLG_DEVICE_ITEMS=64 CLG_DEVICE_CONSTANT=64K CLG_DEVICE_BITS=32 CLG_DEVICE_OPENCL=1.2 CLG_DEVICE_LACKS=double,images
smallest simd CLG_DEVICE_ALLOC=128M CLG_DEVICE_MEMORY=512M CLG_DEVICE_LOCAL=16K CLG_DEVICE_ITEMS=64 CLG_DEVICE_CONSTANT=64K CLG_DEVICE_BITS=32 CLG_DEVICE_OPENCL=1.2 CLG_DEVICE_LACKS=double,images
optional simt CLG_DEVICE_OPENCL=3.0 CLG_DEVICE_ITEMS=128
buffers simt CLG_DEVICE_ALLOC=1M CLG_DEVICE_MEMORY=64M
local simt CLG_DEVICE_LOCAL=1K
ROWS
}

# Verifies folders; what fails or is skipped must say which limit. $summary is the last line.
verify_small() { # WHAT OPTION-OR-FOLDER...
  local what=$1
  shift
  summary=$("$CLTOOL" verify -q --list-skipped "$@" 2>"$work/err" | tee "$work/out" | tail -n 1)
  echo "$what: $summary"
  if ! grep -qE '^[1-9][0-9]* passed' <<<"$summary"; then
    cat "$work/out" "$work/err"
    status=1
  fi
  grep -E '^FAIL|^skip' "$work/out" | grep -vE "$limit" | grep -vFf "$work/skipped" >"$work/unnamed" &&
    { cat "$work/unnamed"; status=1; }
}

# What is skipped on the device as it is, may be skipped.
: >"$work/skipped"
"$CLTOOL" verify -q --list-skipped "${cases[@]}" "${given[@]}" 2>/dev/null | grep '^skip' >"$work/skipped"
echo 'no line of any output' >>"$work/skipped"

export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_device.so
on_device() { # ROW CLASS ASSIGNMENT...
  local row=$1 class=$2
  shift 2
  export CLG_CACHE_DIR=$work/$row.$class # what a kernel was seen to do holds for one device
  # shellcheck disable=SC2163 # assignments
  export "$@"
  name=$(basename "$work"/expected/*.npy .npy)
  "$CLTOOL" run -q "$digits" --fill random:1 --kernels "$class" --rtol 1e-3 \
    --expect "$name=$work/expected/$name.npy" >/dev/null ||
    { echo "digits, $row, $class: another result"; status=1; }
  verify_small "$row, $class, cases" --kernels "$class" "${cases[@]}"
  if [ ${#given[@]} -gt 0 ] && { [ "$row.$class" = smallest.simt ] || [ "${CLG_TEST_SHARE:-}" = all ]; }; then
    verify_small "$row, $class, models" --kernels "$class" --tolerance "$models/tolerance.json" \
      "${given[@]}"
  fi
  exit "$status"
}
n_rows=0
while read -r -a row; do
  n_rows=$((n_rows + 1))
  [ $n_rows = 1 ] || takes_row $n_rows || continue
  [ "${row[0]}" = smallest ] || [ "${CLG_TEST_SHARE:-}" = all ] || cases=("${cases[@]:0:6}")
  (on_device "${row[@]}") || status=1
done < <(rows)

# The self-test leaves out, by name, the case that the device cannot hold, and runs the others.
if ! takes_row 0; then
  echo "the self-test runs at the next commit"
elif ! env CLG_DEVICE_MEMORY=64M CLG_DEVICE_ALLOC=64M "CLG_CACHE_DIR=$work/selftest" \
  "$CLTOOL" selftest --all >"$work/out" 2>"$work/err" || ! grep -qE '^[0-9]{3,} passed, 0 failed' "$work/out" ||
  ! grep -q 'skipped RNN .* no room for a buffer of 64.1 MiB' "$work/err"; then
  echo 'self-test of a device of 64 MiB:'
  tail -n 3 "$work/out" "$work/err"
  status=1
fi

# Limits that are enforced and not reported: the digits fail.
while read -r assignment; do
  if (
    # shellcheck disable=SC2163 # an assignment
    export "$assignment" CLG_DEVICE_SILENT=1 CLG_CACHE_DIR=$work/silent.$assignment CLG_SELFTEST=off
    "$CLTOOL" run -q "$digits" --kernels simt --fill random:1 >"$work/out" 2>&1
  ); then
    echo "$assignment is not enforced"
    status=1
  fi
done <<'LIMITS'
CLG_DEVICE_ALLOC=1K
CLG_DEVICE_MEMORY=4K
CLG_DEVICE_LOCAL=64
CLG_DEVICE_ITEMS=8
LIMITS

# A case in float64 where the device has none, and says that it has.
double=$data/test_cast_FLOAT_to_DOUBLE
[ -d "$double" ] || double=$data/node/test_cast_FLOAT_to_DOUBLE
passes() { "$CLTOOL" verify -q "$double" 2>/dev/null | grep -q '^1 passed'; }
if ! CLG_CACHE_DIR=$work/whole.double passes; then
  echo "the case in float64 does not pass on the device as it is"
  status=1
elif CLG_DEVICE_LACKS=double CLG_DEVICE_SILENT=1 CLG_CACHE_DIR=$work/silent.double passes; then
  echo "CLG_DEVICE_LACKS=double is not enforced"
  status=1
fi
exit "$status"
