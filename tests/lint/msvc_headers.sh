#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The public headers, each alone, as clang compiles them for Microsoft's ABI in the dialect of
# cl.exe: those of C in C and C++, with the compiler's own <stddef.h>, <stdint.h> and <stdbool.h>;
# those of C++ in C++17, all of them in 17 without exceptions and in 20, with clang's libc++ and the C headers of
# MinGW (msvc_libcxx.h). No Windows SDK is needed, and Microsoft's standard library is not seen.
# CL/cl.h is that of this machine.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"
if ! command -v clang >/dev/null || [ ! -f /usr/include/CL/cl.h ]; then
  echo "no clang, or no /usr/include/CL/cl.h"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s /usr/include/CL "$work/CL" # and none of the C library's headers
microsoft=(clang --target=x86_64-pc-windows-msvc -fms-compatibility -fms-extensions
  -fms-compatibility-version=19.30 -DCL_TARGET_OPENCL_VERSION=300 -Wall -Wextra -Werror
  -fsyntax-only -Iinclude -isystem "$work")
compile() { # LANGUAGE FILE
  local standard=c11
  [ "$1" = c ] || standard=c++17
  "${microsoft[@]}" -ffreestanding -x "$1" "-std=$standard" "$2"
}
mingw=/usr/x86_64-w64-mingw32/include
libcxx=$(dirname "$(realpath "$(command -v clang)")")/../include/c++/v1
compile_cpp() { # FILE OPTION...
  "${microsoft[@]}" -nostdinc++ -isystem "$libcxx" -isystem "$mingw" \
    -include tests/lint/msvc_libcxx.h -x c++ "${@:2}" "$1"
}
cat >"$work/use.c" <<'END'
#include <clgraph/clgraph.h>
int main(void)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context = 0;
    return (int)clg_context_create("gpu", &options, &context);
}
END
status=0
for file in include/clgraph/*.h "$work/use.c"; do
  compile c "$file" || status=1
  compile c++ "$file" || status=1
done

if [ ! -f "$libcxx/vector" ] || [ ! -f "$mingw/_mingw.h" ]; then
  echo "C headers alone: libc++-dev or MinGW's headers are not installed"
  exit $status
fi
grep -h '^ *#include <[a-z_]*>' include/clgraph/cpp/*.hpp | grep -v stdfloat >"$work/standard.cpp"
if ! compile_cpp "$work/standard.cpp" -std=c++17 2>/dev/null; then
  echo "C headers alone: this libc++ does not compile with MinGW's C headers"
  exit $status
fi
cat >"$work/use.cpp" <<'END'
#include <clgraph/clgraph.hpp>
int main()
{
    const auto context = clgraph::context::try_create("gpu");
    return context ? 0 : (int)context.status();
}
END
for file in include/clgraph/cpp/*.hpp; do
  compile_cpp "$file" -std=c++17 -fexceptions -fcxx-exceptions || status=1
done
compile_cpp "$work/use.cpp" -std=c++17 -fno-exceptions || status=1
compile_cpp "$work/use.cpp" -std=c++20 -fexceptions -fcxx-exceptions || status=1
exit $status
