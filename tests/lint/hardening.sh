#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The built library and programs have the hardening of cmake/Hardening.cmake: read-only relocations
# that are bound at start, no executable stack, stack protectors, checked copies, and programs that
# are position-independent. Read from the ELF files.
set -euo pipefail
build=${CLG_BUILD_DIR:-build}

option() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
[ -f "$build/CMakeCache.txt" ] || {
  echo "no $build/CMakeCache.txt: configure the build first"
  exit 77
}
is_on() { case $(option "$1") in ON | on | 1 | TRUE | true | YES) return 0 ;; *) return 1 ;; esac }
skip() {
  echo "$1"
  exit 77
}
is_on CLG_HARDENING || skip "the build is not hardened (CLG_HARDENING is off)"
{ is_on CLG_SANITIZE || [ "$(option CLG_SANITIZE)" = thread ]; } && skip "sanitizers replace the hardening"
command -v readelf >/dev/null || skip "readelf is not installed"
files=()
for file in libclgraph.so cltool clgraph-compile; do
  [ ! -f "$build/$file" ] || files+=("$build/$file")
done
[ ${#files[@]} -gt 0 ] || skip "nothing is built"
readelf -h "${files[0]}" >/dev/null 2>&1 || skip "the system's files are not ELF"

status=0
missing() {
  echo "$1 has no $2"
  status=1
}
for file in "${files[@]}"; do
  segments=$(readelf -lW "$file")
  dynamic=$(readelf -dW "$file")
  symbols=$(readelf --dyn-syms -W "$file")
  grep -q GNU_RELRO <<<"$segments" || missing "$file" "read-only relocations (RELRO)"
  grep -qE 'BIND_NOW|FLAGS_1.*\bNOW\b' <<<"$dynamic" || missing "$file" "binding at start (BIND_NOW)"
  grep -qE 'GNU_STACK.* RW +0x' <<<"$segments" || missing "$file" "stack that is not executable"
  grep -q '__stack_chk_fail' <<<"$symbols" || missing "$file" "stack protectors"
  readelf -h "$file" | grep -qE 'Type: +DYN' || missing "$file" "position independence (PIE)"
  # musl has no checked copies; Debug builds no optimisation.
  if is_on clg_has_fortify_2 || is_on clg_has_fortify_3; then
    [ "$(option CMAKE_BUILD_TYPE)" = Debug ] || grep -qE '__[a-z]+_chk\b' <<<"$symbols" ||
      missing "$file" "checked copies of libc (_FORTIFY_SOURCE)"
  fi
done
exit $status
