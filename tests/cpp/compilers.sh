#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The C++ interface with each C++ compiler of the machine, all warnings errors: every test as C++17,
# those of the types as each later standard too, without exceptions, and each header alone. A program
# of each compiler runs; test_types needs no device.
# ctest: timeout 900
set -u
: "${CLG_BUILD_DIR:?the build folder}" "${CLG_SOURCE_DIR:?the source tree}" "${WORK:?a folder of the test}"
cd "$WORK" || exit 1
tests=$CLG_SOURCE_DIR/tests/cpp
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Werror)
include=(-I"$CLG_SOURCE_DIR/include" -DCL_TARGET_OPENCL_VERSION=120)
sanitized=$(sed -n 's/^CLG_SANITIZE:[A-Z]*=//p' "$CLG_BUILD_DIR/CMakeCache.txt")
failed=0
n=0

try() { # WHAT COMMAND...
  local what=$1
  shift
  n=$((n + 1))
  if ! "$@" >out 2>&1; then
    echo "FAILED: $what: $*"
    head -n 40 out
    failed=1
  fi
}

for header in "$CLG_SOURCE_DIR"/include/clgraph/*.hpp "$CLG_SOURCE_DIR"/include/clgraph/cpp/*.hpp; do
  echo "#include <${header#"$CLG_SOURCE_DIR/include/"}>" >"alone-${header##*/}.cpp"
done

# CLG_TEST_SHARE=I/N takes 17 and one of the later ones.
standards=(17 20 23)
[[ ${CLG_TEST_SHARE:-all} != */* ]] || unset "standards[$((1 + ${CLG_TEST_SHARE%/*} % 2))]"
for compiler in g++ clang++; do
  if ! command -v "$compiler" >/dev/null; then
    echo "$compiler is not installed: not tried"
    continue
  fi
  for standard in "${standards[@]}"; do
    name=c++$standard
    echo 'int main() {}' >empty.cpp
    if ! "$compiler" -std="$name" -fsyntax-only empty.cpp 2>/dev/null; then
      name=c++2b
      "$compiler" -std="$name" -fsyntax-only empty.cpp 2>/dev/null || continue
    fi
    cc=("$compiler" -std="$name" "${warnings[@]}" "${include[@]}")
    for test in "$tests"/test_*.cpp; do
      case $standard:$test in
        *no_exceptions.cpp) try "$name" "${cc[@]}" -fno-exceptions -fsyntax-only "$test" ;;
        17:* | *test_types.cpp) try "$name" "${cc[@]}" -fsyntax-only "$test" ;;
      esac
    done
    [ "$standard" = 17 ] || continue
    [ "$compiler" != g++ ] || for alone in alone-*.cpp; do
      try "alone" "${cc[@]}" -fsyntax-only "$alone"
    done
    # No file of its own needs to be linked twice: everything is inline.
    try "twice" "${cc[@]}" -c alone-opencl.hpp.cpp -o one.o
    try "twice" "${cc[@]}" -c alone-opencl.hpp.cpp -o two.o
    if [ "$sanitized" = OFF ] || [ -z "$sanitized" ]; then
      try "program" "${cc[@]}" "$tests/test_types.cpp" one.o two.o -o types -L"$CLG_BUILD_DIR" \
        -lclgraph -Wl,-rpath,"$CLG_BUILD_DIR" -lOpenCL
      try "program of $compiler" ./types
    fi
  done
done
echo "$n compilations and runs"
[ "$n" -gt 20 ] || failed=1
exit $failed
