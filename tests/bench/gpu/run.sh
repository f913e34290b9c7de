#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clgraph on a GPU: what the device is, whether it is right, and how fast, in that order.
#
#   run.sh [SELECTOR [RESULTS [STAGE...]]]     default gpu, ./results, all stages
#
# Stages: devices tests cases models speed fp16 quantized. Runs in a folder that bundle.sh made.
# Where no OpenCL driver is registered, NVIDIA's is looked for and registered for this run alone.
# $PYTHON (default python3) has PyTorch. Each stage writes a file into RESULTS and a line here; the
# exit code is 1 when one failed.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
selector=${1:-gpu} results=${2:-results}
shift $(($# < 2 ? $# : 2))
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(devices tests cases models speed fp16 quantized)
mkdir -p "$results"
results=$(cd -- "$results" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CLG_CACHE_DIR=${CLG_CACHE_DIR:-$work/cache}
cltool=$here/bin/cltool

if [ -z "${OCL_ICD_VENDORS:-}" ] && ! ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1; then
  driver=$(find / -name 'libnvidia-opencl.so.1' -not -path '/proc/*' 2>/dev/null | head -n 1)
  if [ -z "$driver" ]; then
    echo "run.sh: no OpenCL driver is registered here, and there is no libnvidia-opencl.so.1" >&2
    exit 1
  fi
  mkdir "$work/vendors"
  echo "$driver" >"$work/vendors/nvidia.icd"
  export OCL_ICD_VENDORS=$work/vendors
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$driver")
fi

unpack() { # NAME
  mkdir -p "$work/$1"
  [ -f "$here/$1.tar.xz" ] && tar -C "$work/$1" -xJf "$here/$1.tar.xz"
}

devices() {
  "$cltool" devices --diagnose && "$cltool" devices --measure
}

# Each program with a time limit: a driver that hangs is a result as well.
tests() {
  local passed=0 failed=0 program
  unpack tests || return 1
  for program in "$work"/tests/tests/test_*; do
    if timeout 240 "$program" >"$work/log" 2>&1; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "FAIL ${program##*/} ($?)"
      grep -vE '^\[ RUN|^\[ +OK' "$work/log" | head -n 60
    fi
    tail -n 12 "$work/log" | grep -E 'kernels run|PASSED|FAILED' | sed "s/^/${program##*\/}: /"
  done
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

cases() {
  unpack cases || return 1
  "$cltool" verify -d "$selector" "$work/cases"
}

models() {
  unpack models || return 1
  local tolerance=()
  [ ! -f "$work/models/tolerance.json" ] || tolerance=(--tolerance "$work/models/tolerance.json")
  "$cltool" verify -d "$selector" "${tolerance[@]}" "$work/models"
}

speed() { "${PYTHON:-python3}" "$here/compare.py" "$cltool" "$selector" "$work/speed" "$results/speed.json"; }

# GEMM in float16, by matrix units where the device has them.
fp16() { "${PYTHON:-python3}" "$here/fp16_gemm.py" "$cltool" "$selector" "$work/fp16" "$results/fp16.json"; }

quantized() { "${PYTHON:-python3}" "$here/quantized.py" "$cltool" "$selector" "$work/quantized" "$results/quantized.json"; }

failed=0
for stage in "${stages[@]}"; do
  start=$SECONDS
  if "$stage" >"$results/$stage.txt" 2>&1; then word=passed; else word=FAILED failed=1; fi
  echo "==== $stage: $word after $((SECONDS - start)) s: $(tail -n 1 "$results/$stage.txt")"
done
exit $failed
