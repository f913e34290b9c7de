#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests as they would run on other processors: with a driver's compiler limited to older
# instruction sets, and with other widths of vectors and numbers of compute units than the
# machine's.
#
#   tools/cpu-variants.sh [--build FOLDER] [--variant NAME | --every-variant]... [--jobs N]
#                         [TEST...]
#   tools/cpu-variants.sh --variants                  the variants that this machine can show, and
#                                                     what each sets
#
# TEST is a ctest's name (api.selftest) or a pattern of the shell ('ops.*'); 'all' is every test of
# ops, api, faults, cli, conformance and models. Without tests and variants, the share that ctest's
# conformance.cpu_variants runs. --build: a folder built with tests, default build. Each variant has
# separate caches, removed at the end. CLG_TEST_PLACES and CLG_TEST_SHARE work as they do for ctest
# (docs/testing.md), and kernels are optimised.
#
# Prints a line for each variant; of a test that fails, its output. Fails when one fails or none
# ran.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# ---- variants ------------------------------------------------------------------------------------

# LAYER stands for OPENCL_LAYERS=, whose path may have blanks.
layer() { # ASSIGNMENT...: of tests/layers/opencl_device.c
  echo "LAYER $*"
}
cpu_has() { grep -qw -m 1 -- "$1" /proc/cpuinfo 2>/dev/null; }

# NAME and ASSIGNMENTS of each variant, a line each.
#   pocl-NAME   PoCL's kernel library NAME (POCL_KERNELLIB_NAME, versions 3 to 7: a file
#               kernel-*-NAME.bc), which compiles for the processor of that name. PoCL reports the
#               vectors of the machine all the same: the layer puts that right
#   floats-N    vectors of N floats
#   units-N     compute units that the layer claims
#   threads-N   compute units that PoCL has: POCL_MAX_PTHREAD_COUNT (3), POCL_CPU_MAX_CU_COUNT (5
#               and later, no more than there are)
#   intel-NAME  Intel's CPU runtime, where OCL_ICD_VENDORS names a folder with its .icd file:
#               CL_CONFIG_CPU_TARGET_ARCH
#   qemu-NAME   QEMU's user mode emulates the processor NAME, for tests, cltool and the compile
#               helper: what drivers read from the processor is right too. 20 to 40 times slower
variants() {
  local name needs floats
  if [ -d "${OCL_ICD_VENDORS:-}" ] && grep -qs libintelocl "$OCL_ICD_VENDORS"/*.icd; then
    while read -r name needs; do
      cpu_has "$needs" && echo "intel-$name CL_CONFIG_CPU_TARGET_ARCH=$name"
    done <<<$'corei7 sse4_2\ncorei7-avx avx\ncore-avx2 avx2\nskx avx512dq\nicelake-server avx512_vnni'
  else
    while read -r name needs floats; do
      compgen -G "/usr/share/pocl/kernel-*-$name.bc" >/dev/null && cpu_has "$needs" &&
        echo "pocl-$name POCL_KERNELLIB_NAME=$name $(layer "CLG_DEVICE_FLOATS=$floats")"
    done <<<$'sse2 sse2 4\nssse3 ssse3 4\nsse41 sse4_1 4\navx avx 8\navx_f16c f16c 8\navx2 avx2 8\navx512 avx512dq 16'
    for name in 1 64; do echo "threads-$name POCL_MAX_PTHREAD_COUNT=$name POCL_CPU_MAX_CU_COUNT=$name"; done
  fi
  if [ "$(uname -m)" = x86_64 ] && command -v qemu-x86_64 >/dev/null; then
    # Less what QEMU would warn that it cannot do.
    echo "qemu-haswell EMULATED=Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"
  fi
  for name in 4 8 16; do echo "floats-$name $(layer "CLG_DEVICE_FLOATS=$name")"; done
  for name in 1 2 64; do echo "units-$name $(layer "CLG_DEVICE_UNITS=$name")"; done
}

# ---- tests ---------------------------------------------------------------------------------------

all_tests() {
  (
    cd "$here/tests"
    for area in ops api faults conformance models; do
      find "$area" -name 'test_*.c' | sort | while read -r file; do
        name=$(basename "$file" .c)
        [ ! -x "$build/tests/$area/$name" ] || echo "$area.${name#test_}"
      done
    done
    # Those that run tests in variants themselves are not among them.
    for file in conformance/*.sh cli/*.sh; do
      name=${file%.sh}
      [ "$name" = conformance/cpu_variants ] || echo "${name/\//.}"
    done
  )
}

run_test() { # AREA.NAME
  local area=${1%%.*} name=${1#*.} code=0 run=()
  [ -z "${EMULATED:-}" ] || run=(qemu-x86_64 -cpu "$EMULATED")
  if [ -x "$build/tests/$area/test_$name" ]; then
    timeout 1800 "${run[@]}" "$build/tests/$area/test_$name" || code=$?
  else
    timeout 1800 bash "$here/cmake/run_script.sh" "$here/tests/$area/$name.sh" || code=$?
  fi
  return $code
}

# Runs one test, prints "passed", "skipped" or "FAILED" with its name.
report_test() { # AREA.NAME
  local code=0 log=$work/$1.log
  run_test "$1" >"$log" 2>&1 </dev/null || code=$?
  case $code in
    0) echo "passed $1" ;;
    77) echo "skipped $1: $(tail -n 1 "$log")" ;;
    *)
      echo "FAILED $1: exit code $code"
      tail -n 60 "$log" | sed 's/^/  | /'
      ;;
  esac
}

usage() {
  sed -n '/^#   tools/,/^#$/s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

build=$here/build
jobs=2
chosen=()
patterns=()
list_only=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd -- "${2:?a folder}" && pwd) && shift ;;
    --variant) chosen+=("${2:?a variant}") && shift ;;
    --every-variant) mapfile -t chosen < <(variants | cut -d ' ' -f 1) ;;
    --jobs) jobs=${2:?a number} && shift ;;
    --variants) list_only=yes ;;
    --one) # of this script alone: one test in the environment of a variant
      report_test "${2:?a test}"
      exit 0
      ;;
    -*) usage ;;
    *) patterns+=("$1") ;;
  esac
  shift
done
export build work
[ -z "$list_only" ] || { variants; exit 0; }

[ -f "$build/tests/layers/opencl_device.so" ] || {
  echo "cpu-variants.sh: there are no tests in $build: configure with -DCLG_BUILD_TESTS=ON and build" >&2
  exit 2
}
# The tests that one of some patterns matches.
choose_tests() { # PATTERN...
  local pattern name
  tests=()
  for pattern in "$@"; do
    [ "$pattern" != all ] || pattern='*'
    # shellcheck disable=SC2053 # a pattern
    while read -r name; do [[ $name != $pattern ]] || tests+=("$name"); done < <(all_tests)
  done
  [ ${#tests[@]} -gt 0 ] || { echo "cpu-variants.sh: no test is called $*" >&2; exit 2; }
}

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
status=0
n_ran=0
# Writes $work/PROGRAM, which runs that of the build on the processor.
write_emulated() { # PROGRAM PROCESSOR
  printf '#!/bin/sh\nexec qemu-x86_64 -cpu "%s" "%s" "$@"\n' "$2" "$build/$1" >"$work/$1"
  chmod +x "$work/$1"
}
run_variant() { # VARIANT: `tests`
  local variant=$1 settings start n_passed n_failed cltool=$build/cltool
  settings=$(variants | sed -n "s/^$variant //p")
  if [ -z "$settings" ]; then
    echo "$variant: skipped, neither this processor nor its driver can show it"
    return
  fi
  work=$top/$variant
  mkdir -p "$work/store" "$work/pocl"
  read -ra settings <<<"$settings"
  settings=("${settings[@]/#LAYER/OPENCL_LAYERS=$build/tests/layers/opencl_device.so}")
  if [[ ${settings[0]} == EMULATED=* ]]; then
    write_emulated cltool "${settings[0]#*=}"
    write_emulated clgraph-compile "${settings[0]#*=}"
    cltool=$work/cltool
    settings+=("CLG_COMPILE_HELPER=$work/clgraph-compile")
  fi
  start=$SECONDS
  printf '%s\n' "${tests[@]}" |
    env "${settings[@]}" CLG_COMPILATION=optimized \
      CLG_CACHE_DIR="$work/store" POCL_CACHE_DIR="$work/pocl" \
      CLG_SOURCE_DIR="$here" CLG_BUILD_DIR="$build" \
      CLG_TEST_MODELS="${CLG_TEST_MODELS:-$here/../shared/models}" CLTOOL="$cltool" \
      xargs -r -P "$jobs" -n 1 bash "${BASH_SOURCE[0]}" --build "$build" --one >"$work/results"
  n_passed=$(grep -c '^passed' "$work/results" || true)
  n_failed=$(grep -c '^FAILED' "$work/results" || true)
  grep -v '^passed' "$work/results" || true
  echo "$variant: $n_passed passed, $n_failed failed of ${#tests[@]} in $((SECONDS - start)) s (${settings[*]})"
  n_ran=$((n_ran + n_passed))
  [ "$n_failed" -eq 0 ] || status=1
  rm -rf "$work"
}

if [ ${#chosen[@]} -eq 0 ] && [ ${#patterns[@]} -eq 0 ]; then
  # A row of four where CLG_TEST_SHARE is I/N, another one for each I.
  [[ ${CLG_TEST_SHARE:-all} == */* ]] && row=$((${CLG_TEST_SHARE%/*} % 4)) || row=
  while read -r number variant names; do
    [ "${row:-$number}" = "$number" ] || continue
    read -ra names <<<"$names"
    choose_tests "${names[@]}"
    run_variant "$variant"
  done <<'SHARE'
0 pocl-avx2 api.selftest
1 pocl-sse2 api.blocked_layout api.session
2 units-1 api.session
3 units-64 api.session
SHARE
else
  [ ${#chosen[@]} -gt 0 ] || chosen=(pocl-sse2 pocl-avx2 units-1 units-64)
  [ ${#patterns[@]} -gt 0 ] || patterns=(api.selftest api.session api.blocked_layout)
  choose_tests "${patterns[@]}"
  for variant in "${chosen[@]}"; do run_variant "$variant"; done
fi
[ "$n_ran" -gt 0 ] || { echo "no test ran"; exit 77; }
exit $status
