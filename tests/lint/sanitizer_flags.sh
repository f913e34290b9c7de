#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The shared library can be linked by clang with a sanitizer that is given by CMAKE_C_FLAGS, in place
# of CLG_SANITIZE: clang leaves the functions of sanitizers undefined, so that the linker must allow
# that. Only configures, and reads the command that would link.
set -euo pipefail
source=${CLG_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
for program in clang clang++ cmake ninja; do
  command -v $program >/dev/null || {
    echo "$program is not installed"
    exit 77
  }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# has_option ARGS...: whether the link of the shared library refuses undefined functions
has_option() {
  rm -rf "$work/build"
  CC=clang CXX=clang++ cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    --log-level=ERROR "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
  ninja -C "$work/build" -t commands libclgraph.so >"$work/commands"
  grep -q -- '-o libclgraph\.so' "$work/commands" || {
    echo "no command links libclgraph.so"
    exit 1
  }
  grep -- '-o libclgraph\.so' "$work/commands" | grep -q -- '--no-undefined'
}

status=0
for flags in -DCMAKE_C_FLAGS=-fsanitize=address -DCLG_SANITIZE=ON; do
  if has_option "$flags"; then
    echo "$flags: libclgraph.so is linked with --no-undefined, which clang's sanitizers cannot be"
    status=1
  fi
done
if ! has_option; then
  echo "without sanitizers libclgraph.so is linked without --no-undefined"
  status=1
fi
exit $status
