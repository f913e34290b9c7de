#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the library and cltool for other machines than this one: against an older glibc, and for
# other processors.
#
#   tools/portable.sh ARCH FOLDER [OPTION...]   ARCH: x86_64 or aarch64; OPTION: of cmake
#
# The compiler is PyPI's ziglang, which knows the symbols of each glibc: programs run where glibc is
# 2.28 or newer (CLG_GLIBC names another one). Debian's static zlib, PCRE2 and jansson and the
# headers of OpenCL, CLBlast, xxHash and stb come from its packages for ARCH, unpacked below
# FOLDER; nothing is installed. Needs apt, and network at the first call. What is built is in
# FOLDER/build, without debug information.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *)
    sed -n '6,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
arch=$1
mkdir -p -- "${2:?portable.sh ARCH FOLDER}"
place=$(cd -- "$2" && pwd)
target=$arch-linux-gnu.${CLG_GLIBC:-2.28}
# static libraries, then headers alone
packages=(zlib1g-dev libpcre2-dev libjansson-dev libstb-dev
  opencl-c-headers libclblast-dev libxxhash-dev)

# apt's lists of another architecture, beside the system's own.
download() { # PACKAGE...
  local lists=$place/apt options
  options=(-o "APT::Architecture=$debian" -o "APT::Architectures=$debian"
    -o "Dir::State=$lists/state" -o "Dir::Cache=$lists/cache"
    -o "Dir::State::status=$lists/status" -o Debug::NoLocking=1)
  mkdir -p "$lists/state/lists/partial" "$lists/cache/archives/partial" "$lists/debs"
  touch "$lists/status"
  apt-get "${options[@]}" -qq update
  (cd "$lists/debs" && apt-get "${options[@]}" -qq download "$@")
}

if [ ! -e "$place/done" ]; then
  python3 -m venv "$place/venv"
  "$place/venv/bin/pip" install --quiet ziglang
  download "${packages[@]}"
  rm -rf "$place/sysroot"
  for deb in "$place"/apt/debs/*.deb; do dpkg -x "$deb" "$place/sysroot"; done
  find "$place/sysroot" -name '*.so*' -delete # static libraries alone
  touch "$place/done"
fi

mkdir -p "$place/bin"
for tool in cc ar ranlib; do
  also=
  [ "$tool" != cc ] || also="-target $target"
  printf '#!/bin/sh\nexec "%s/venv/bin/python" -m ziglang %s %s "$@"\n' "$place" "$tool" "$also" \
    >"$place/bin/$tool"
  chmod +x "$place/bin/$tool"
done

export PKG_CONFIG_LIBDIR=$place/sysroot/usr/lib/$arch-linux-gnu/pkgconfig:$place/sysroot/usr/share/pkgconfig
export PKG_CONFIG_SYSROOT_DIR=$place/sysroot
cmake -S "$root" -B "$place/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$arch" \
  -DCMAKE_C_COMPILER="$place/bin/cc" -DCMAKE_AR="$place/bin/ar" \
  -DCMAKE_RANLIB="$place/bin/ranlib" -DCMAKE_LIBRARY_ARCHITECTURE="$arch-linux-gnu" \
  -DCMAKE_FIND_ROOT_PATH="$place/sysroot" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
  -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
  -DCMAKE_SHARED_LINKER_FLAGS=-s -DCMAKE_EXE_LINKER_FLAGS=-s -DCLG_BUILD_EXAMPLES=OFF "${@:3}"
cmake --build "$place/build"
