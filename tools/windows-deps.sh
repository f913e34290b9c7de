#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What clgraph needs on Windows and Debian does not have ready, into a folder outside of the tree:
#
#   tools/windows-deps.sh FOLDER
#
# PCRE2, jansson, utf8proc and cmocka are compiled with MinGW-w64 from Debian's source packages, stb from the
# headers of libstb-dev; headers of OpenCL, CLBlast and xxHash are copied, and OpenCL.dll gets an
# import library, for programs that call OpenCL themselves. zlib is libz-mingw-w64-dev's own.
# cmake/toolchains/mingw-w64.cmake finds all of it below $CLG_WINDOWS_DEPS. What is there already is
# not built again.
#
# apt keeps lists and sources in FOLDER too: the machine's own are not touched. Needs the packages
# of `tools/packages.sh list build windows`.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: tools/windows-deps.sh FOLDER" >&2
  exit 2
fi
tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
prefix=$(realpath -m -- "$1")
case $prefix/ in
  "$tree"/*)
    echo "windows-deps.sh: $prefix is inside of the tree" >&2
    exit 2
    ;;
esac
# shellcheck source=/dev/null
. "$tree/tools/apt.bash"
target=x86_64-w64-mingw32
work=$prefix/work
mkdir -p "$work" "$prefix/include" "$prefix/lib/pkgconfig"

# ---- Debian's sources ----------------------------------------------------------------------------

apt=()
# Source packages of this machine's release.
prepare_apt() {
  local release
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  apt_private "$work/apt" deb-src "$release"
}

# build PACKAGE SOURCE OPTION...: unless PACKAGE.pc is there already.
build() {
  local package=$1 name=$2 folder
  shift 2
  [ ! -f "$prefix/lib/pkgconfig/$package.pc" ] || return 0
  echo "==== $name for Windows"
  [ ${#apt[@]} -gt 0 ] || prepare_apt
  rm -rf "${work:?}/$name"
  mkdir "$work/$name"
  (cd "$work/$name" && "${apt[@]}" source --only-source "$name")
  folder=$(find "$work/$name" -mindepth 1 -maxdepth 1 -type d)
  cmake -S "$folder" -B "$work/$name/build" -G Ninja --log-level=WARNING \
    -DCMAKE_TOOLCHAIN_FILE="$tree/cmake/toolchains/mingw-w64.cmake" -DCMAKE_POLICY_DEFAULT_CMP0077=NEW \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS=OFF "$@"
  cmake --build "$work/$name/build" --parallel "${CLG_JOBS:-$(nproc)}"
  cmake --install "$work/$name/build" >/dev/null
}

# ---- from packages of this machine ---------------------------------------------------------------

copy_headers() {
  cp -rL /usr/include/CL "$prefix/include/"
  cp -L /usr/include/clblast_c.h /usr/include/clblast_half.h /usr/include/xxhash.h "$prefix/include/"
  if [ -f /usr/include/xxh3.h ]; then cp -L /usr/include/xxh3.h "$prefix/include/"; fi
}

describe() { # NAME VERSION CFLAGS LIBS
  printf 'prefix=%s\n\nName: %s\nDescription: %s for Windows\nVersion: %s\nCflags: %s\nLibs: %s\n' \
    "$prefix" "$1" "$1" "$2" "$3" "$4" >"$prefix/lib/pkgconfig/$1.pc"
}

# The part of stb that cltool calls; Debian's library has more of them in one.
build_stb() {
  [ ! -f "$prefix/lib/pkgconfig/stb.pc" ] || return 0
  echo "==== stb for Windows"
  cp -rL /usr/include/stb "$prefix/include/"
  printf '#define %s\n#include "%s"\n' STB_IMAGE_IMPLEMENTATION stb_image.h \
    STB_IMAGE_WRITE_IMPLEMENTATION stb_image_write.h >"$work/stb.c"
  $target-gcc -O2 -I "$prefix/include/stb" -c "$work/stb.c" -o "$work/stb.o"
  rm -f "$prefix/lib/libstb.a"
  $target-ar rcs "$prefix/lib/libstb.a" "$work/stb.o"
  # shellcheck disable=SC2016  # ${prefix} is pkg-config's
  describe stb "$(dpkg-query -W -f='${source:Upstream-Version}' libstb-dev)" '-I${prefix}/include/stb' '-L${prefix}/lib -lstb'
}

# Which DLL has the functions of <CL/cl.h>: all that a linker wants to know of it.
import_opencl() {
  [ ! -f "$prefix/lib/libOpenCL.dll.a" ] || return 0
  {
    printf 'LIBRARY OpenCL.dll\nEXPORTS\n'
    echo '#include <CL/cl.h>' | $target-gcc -E -P -DCL_TARGET_OPENCL_VERSION=120 -I "$prefix/include" - |
      tr '\n' ' ' | grep -oE '\bcl[A-Z][A-Za-z0-9]*\(' | tr -d '(' | sort -u
  } >"$work/OpenCL.def"
  $target-dlltool -d "$work/OpenCL.def" -D OpenCL.dll -l "$prefix/lib/libOpenCL.dll.a"
}

copy_headers
build_stb
import_opencl
build libpcre2-8 pcre2 -DPCRE2_BUILD_TESTS=OFF -DPCRE2_BUILD_PCRE2GREP=OFF
# Its header takes itself for a DLL's by default.
grep -q PCRE2_STATIC "$prefix/lib/pkgconfig/libpcre2-8.pc" ||
  sed -i 's/^Cflags: /&-DPCRE2_STATIC /' "$prefix/lib/pkgconfig/libpcre2-8.pc"
build jansson jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
build libutf8proc utf8proc -DUTF8PROC_INSTALL=ON -DUTF8PROC_ENABLE_TESTING=OFF
grep -q UTF8PROC_STATIC "$prefix/lib/pkgconfig/libutf8proc.pc" ||
  sed -i -e 's/-DUTF8PROC_EXPORTS//' -e 's/^Cflags: /&-DUTF8PROC_STATIC /' "$prefix/lib/pkgconfig/libutf8proc.pc"
build cmocka cmocka -DWITH_EXAMPLES=OFF -DWITH_STATIC_LIB=ON -DCMAKE_C_FLAGS=-D__USE_MINGW_ANSI_STDIO=1
# It makes a DLL in any case; a static library of that name is all that is wanted here.
# Its messages know C11's conversions (%zu), and its header has to say so.
if [ -f "$prefix/lib/libcmocka-static.a" ]; then
  sed -i 's/__printf__/__gnu_printf__/g' "$prefix/include/cmocka.h"
  mv "$prefix/lib/libcmocka-static.a" "$prefix/lib/libcmocka.a"
  rm -f "$prefix/lib/libcmocka.dll.a" "$prefix/bin/cmocka.dll"
fi
echo "windows-deps.sh: all in $prefix"
