#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every check that needs no device: layout, clang-tidy, shellcheck, and the scripts of tests/lint.
# Needs a configured build folder for clang-tidy: tools/lint.sh [BUILD], default build.
# Ends with `N passed, N failed, N skipped`.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root" || exit 1
build=${1:-build}
export CLG_SOURCE_DIR=$root CLG_BUILD_DIR=$build

# shellcheck source=/dev/null
. tools/checks.bash

c_files() { # FOLDER...
  find "$@" -type f \( -name "*.[ch]" -o -name "*.[ch]pp" -o -name "*.cl" -o -name "*.clh" \) 2>/dev/null | sort
}
layout() {
  local file status=0
  while IFS= read -r file; do
    if ! clang-format --dry-run -Werror "$file" 2>/dev/null; then
      echo "clang-format -i $file"
      status=1
    fi
  done < <(c_files src onnxruntime include tools tests examples cl)
  return $status
}
# Prints those of the files of standard input that are in the share I/N of CLG_TEST_SHARE, or that
# one of the last 64 commits changed, or changed a header of: more than are made between two runs of
# continuous integration.
tidy_share() {
  local share=${CLG_TEST_SHARE:-all} changed headers files
  mapfile -t files
  if [ "$share" = all ] || ! changed=$(git log -n 64 --format= --name-only 2>/dev/null); then
    printf '%s\n' "${files[@]}"
    return
  fi
  headers=$(grep '\.h$' <<<"$changed" | sed 's|.*/|/|; s|$|"|' | sort -u)
  {
    printf '%s\n' "${files[@]}" | awk -v i="${share%/*}" -v n="${share#*/}" 'NR % n == i'
    printf '%s\n' "${files[@]}" | grep -xF "$changed"
    [ -z "$headers" ] || grep -lF "$headers" "${files[@]}"
    true # also where grep finds none
  } | sort -u
}
tidy() {
  [ -f "$build/compile_commands.json" ] || {
    echo "no $build/compile_commands.json: configure the build first"
    return 1
  }
  # gcc's flags that clang does not know are not reported.
  local tidy=(clang-tidy -quiet -p "$build" --extra-arg=-Wno-unknown-warning-option)
  local each=(xargs -d '\n' -r -P "$(nproc)" -n 4) status=0
  # The files that define what tidy_status.h replaces go without it.
  local plain=(src/base/cancel.c src/base/error.c src/base/posix/system_posix.c)
  # Windows' files are compiled for Windows alone (tools/windows.sh).
  find src -name '*.c' ! -name '*_windows.c' | sort | grep -vxF "$(printf '%s\n' "${plain[@]}")" |
    tidy_share |
    "${each[@]}" "${tidy[@]}" --extra-arg=-include --extra-arg="$root/tools/lint/tidy_status.h" ||
    status=1
  {
    printf '%s\n' "${plain[@]}"
    find tools -name '*.c' ! -name '*_windows.c' | sort
  } | tidy_share | "${each[@]}" "${tidy[@]}" || status=1
  return $status
} 2> >(grep -vE '^[0-9]+ (warning|error).* generated' >&2)
shell_scripts() {
  {
    find tools tests cmake docs examples python onnxruntime -name '*.sh' -type f 2>/dev/null
    echo .ci/run
    grep -l '^#!/bin/sh' debian/tests/*
  } | sort | xargs -d '\n' shellcheck -x --exclude=SC2317 # functions called by trap and by name
}

# Two checks at a time, since most use one processor: each leaves its output and exit status, which
# are reported in the order of the list.
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
run_one() { # NAME
  local code=0 command=(bash "tests/lint/$1.sh")
  case $1 in
    layout) command=(layout) ;;
    clang-tidy) command=(tidy) ;;
    shellcheck) command=(shell_scripts) ;;
  esac
  "${command[@]}" >"$results/$1.out" 2>&1 </dev/null || code=$?
  echo "$code" >"$results/$1.code"
}
result_of() { # NAME
  cat "$results/$1.out"
  return "$(cat "$results/$1.code")"
}
names=(layout clang-tidy shellcheck)
for script in tests/lint/*.sh; do names+=("$(basename "$script" .sh)"); done
export root build results
export -f c_files layout tidy tidy_share shell_scripts run_one
# The longest first.
printf '%s\n' portability clang-tidy "${names[@]}" | awk '!seen[$0]++' |
  xargs -P 2 -n 1 bash -uo pipefail -c 'run_one "$@"' run_one
for name in "${names[@]}"; do check "$name" result_of "$name"; done

# A report, which fails nothing: words of our own in the last change, where the field has a standard
# term.
python3 tests/lint/words.py | tail -n 20

checks_finish
