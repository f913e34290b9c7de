#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clgraph on a GPU: what the device is, whether it is right, and how fast, in that order.
#
#   run.sh [SELECTOR [RESULTS [STAGE...]]]     default gpu, ./results, all stages
#
# Stages: devices selftest tests cases models suite speed profile tune fp16 quantized nbits; profile
# and tune take the models of speed. Runs in a folder that bundle.sh made. What tests for right
# results runs in $JOBS processes (default: half of the processors), what measures runs alone.
# Where no GPU is registered, NVIDIA's driver is looked for and registered for this run alone.
# $PYTHON (default python3) has PyTorch. Each stage writes a file into RESULTS and a line here, and a
# folder of logs where it has many; the exit code is 1 when one failed.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
selector=${1:-gpu} results=${2:-results}
shift $(($# < 2 ? $# : 2))
stages=("$@")
[ ${#stages[@]} -gt 0 ] ||
  stages=(devices selftest tests cases models suite speed profile tune fp16 quantized nbits)
jobs=${JOBS:-$((($(nproc) + 1) / 2))}
mkdir -p "$results"
results=$(cd -- "$results" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}

# Python reads .xz where the machine has no xz.
unpack() { # NAME
  mkdir -p "$work/$1"
  [ -f "$here/$1.tar.xz" ] || return 1
  tar -C "$work/$1" -xJf "$here/$1.tar.xz" 2>/dev/null ||
    "$python" -m tarfile -e "$here/$1.tar.xz" "$work/$1"
}
unpack programs || exit 1
export LD_LIBRARY_PATH=$work/programs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CLG_CACHE_DIR=${CLG_CACHE_DIR:-$work/cache}
cltool=$work/programs/bin/cltool

# Drivers that no .icd file names, as in many containers.
shows_gpu() { "$cltool" devices 2>/dev/null | grep -q '^ *kind .*gpu'; }
if [ -z "${OCL_ICD_VENDORS:-}" ] && [[ $selector != cpu && $selector != pocl ]] && ! shows_gpu; then
  driver=$(find / -name 'libnvidia-opencl.so.1' -not -path '/proc/*' 2>/dev/null | head -n 1)
  if [ -z "$driver" ]; then
    echo "run.sh: no GPU is registered here, and there is no libnvidia-opencl.so.1" >&2
    exit 1
  fi
  mkdir "$work/vendors"
  echo "$driver" >"$work/vendors/nvidia.icd"
  export OCL_ICD_VENDORS=$work/vendors
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$driver")
  if ! shows_gpu; then
    "$cltool" devices --diagnose >&2
    exit 1
  fi
fi

devices() {
  "$cltool" devices --diagnose && "$cltool" devices --measure
}

selftest() { "$cltool" selftest --all -d "$selector"; }

# One test program, with a time limit: a driver that hangs is a result as well.
test_program() { # PROGRAM LOGS
  local name=${1##*/} status=0
  timeout 240 "$1" >"$2/$name.log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    rm "$2/$name.log"
    echo "passed $name"
  else
    echo "FAILED $name ($status)"
  fi
}
export -f test_program

tests() {
  unpack tests || return 1
  mkdir -p "$results/tests"
  export CLG_TEST_DEVICE=$selector
  # The inner shell expands $1 and $2.
  # shellcheck disable=SC2016
  find "$work/tests/tests" -name 'test_*' -print0 | sort -z |
    xargs -0 -P "$jobs" -I{} bash -c 'test_program "$1" "$2"' _ {} "$results/tests" | sort
  ! grep -q '^FAILED' "$results/tests.txt"
}

# Cases in as many processes as there are jobs: compilation is most of their time.
cases() {
  unpack cases || return 1
  local tolerance=() i status=0 shards=()
  [ ! -f "$work/cases/tolerance.json" ] || tolerance=(--tolerance "$work/cases/tolerance.json")
  mkdir -p "$results/cases"
  find "$work/cases" -name model.onnx -printf '%h\n' | sort >"$work/cases.txt"
  split -n "r/$jobs" "$work/cases.txt" "$work/shard."
  for shard in "$work"/shard.*; do
    xargs "$cltool" verify -d "$selector" "${tolerance[@]}" --list-skipped <"$shard" \
      >"$results/cases/${shard##*.}.txt" 2>&1 &
    shards+=($!)
  done
  for i in "${shards[@]}"; do wait "$i" || status=1; done
  grep -hE '^(FAIL|ERROR)' "$results"/cases/*.txt
  tail -q -n 1 "$results"/cases/*.txt
  return "$status"
}

models() {
  unpack models || return 1
  local tolerance=()
  [ ! -f "$work/models/tolerance.json" ] || tolerance=(--tolerance "$work/models/tolerance.json")
  "$cltool" verify -d "$selector" "${tolerance[@]}" "$work/models"
}

suite() {
  "$cltool" bench --suite --measure -d "$selector" -o "$results/suite.json" --force
}

speed() { "$python" "$here/compare.py" "$cltool" "$selector" "$work/speed" "$results/speed.json"; }

profile() {
  local model
  for model in "$work"/speed/*/model.onnx; do
    "$cltool" profile "$model" -d "$selector" -q || return 1
  done
}

# Every implementation of each node measured, and the time of a prediction before and after.
tune() {
  local model
  for model in "$work"/speed/*/model.onnx; do
    "$cltool" bench "$model" -d "$selector" -q &&
      "$cltool" tune "$model" -d "$selector" -q --export "$results/tuned-$(basename "${model%/*}").txt" &&
      "$cltool" bench "$model" -d "$selector" -q || return 1
  done
}

# GEMM in float16, by matrix units where the device has them.
fp16() { "$python" "$here/fp16_gemm.py" "$cltool" "$selector" "$work/fp16" "$results/fp16.json"; }

quantized() { "$python" "$here/quantized.py" "$cltool" "$selector" "$work/quantized" "$results/quantized.json"; }

nbits() { "$python" "$here/nbits.py" "$cltool" "$selector" "$work/nbits" "$results/nbits.json"; }

failed=0
for stage in "${stages[@]}"; do
  start=$SECONDS
  if "$stage" >"$results/$stage.txt" 2>&1; then word=passed; else word=FAILED failed=1; fi
  echo "==== $stage: $word after $((SECONDS - start)) s: $(tail -n 1 "$results/$stage.txt")"
done
exit $failed
