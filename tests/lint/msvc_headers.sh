#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The public C headers, each alone, as clang compiles them for Microsoft's ABI, in C and C++, in the
# dialect of cl.exe. The headers of C that they include are the compiler's own (<stddef.h>,
# <stdint.h>, <stdbool.h>): no Windows SDK is needed. CL/cl.h is that of this machine.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"
if ! command -v clang >/dev/null || [ ! -f /usr/include/CL/cl.h ]; then
  echo "no clang, or no /usr/include/CL/cl.h"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s /usr/include/CL "$work/CL" # and none of the C library's headers
compile() { # LANGUAGE FILE
  local standard=c11
  [ "$1" = c ] || standard=c++17
  clang --target=x86_64-pc-windows-msvc -ffreestanding -fms-compatibility -fms-extensions \
    -fms-compatibility-version=19.30 -DCL_TARGET_OPENCL_VERSION=300 -Wall -Wextra -Werror \
    -fsyntax-only -Iinclude -isystem "$work" -x "$1" "-std=$standard" "$2"
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
exit $status
