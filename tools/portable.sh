#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the library, cltool and ONNX Runtime's provider for other machines than this one: against
# an older glibc, and for other processors.
#
#   tools/portable.sh ARCH FOLDER [OPTION...]   ARCH: x86_64 or aarch64; OPTION: of cmake
#   tools/portable.sh --toolchain ARCH FOLDER   the compiler and the libraries alone
#
# The compiler is PyPI's ziglang, which knows the symbols of each glibc: programs run where glibc is
# 2.28 or newer (CLG_GLIBC names another one). Static zlib, PCRE2, jansson and utf8proc, and the
# headers of OpenCL, CLBlast, xxHash, stb and ONNX Runtime, come from Debian's packages for ARCH,
# unpacked below FOLDER; nothing is installed. Needs apt with a Debian mirror, and network at the first call. What
# is built is in FOLDER/build, without debug information; cmake/toolchains/portable.cmake is for
# other builds. FOLDER/LICENSES is tools/licenses.sh's.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
usage() {
  sed -n '6,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
building=true
if [ "${1:-}" = --toolchain ]; then
  building=false
  shift
fi
case ${1:-} in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *) usage ;;
esac
[ -n "${2:-}" ] || usage
arch=$1
mkdir -p -- "$2"
place=$(cd -- "$2" && pwd)
target=$arch-linux-gnu.${CLG_GLIBC:-2.28}
mapfile -t packages < <("$root/tools/packages.sh" --suite bookworm list static)

# Debian 12's, whatever this machine is: libraries of a newer glibc may need its symbols.
fetch() {
  local apt=() deb
  # shellcheck source=/dev/null
  . "$root/tools/apt.bash"
  python3 -m venv "$place/venv"
  "$place/venv/bin/pip" install --quiet ziglang
  apt_private "$place/apt" deb bookworm "$debian"
  rm -rf "$place/debs" "$place/sysroot"
  mkdir -p "$place/debs"
  (cd "$place/debs" && "${apt[@]}" download "${packages[@]}")
  for deb in "$place"/debs/*.deb; do dpkg -x "$deb" "$place/sysroot"; done
  find "$place/sysroot" -name '*.so*' -delete # static libraries alone
  CLG_ORT_PREFIX=$place/sysroot/usr "$root/tools/packages.sh" install onnxruntime
}
if [ "$(cat "$place/complete" 2>/dev/null)" != "$arch ${packages[*]}" ]; then
  fetch >&2
  echo "$arch" >"$place/arch"
  echo "$arch ${packages[*]}" >"$place/complete"
fi

mkdir -p "$place/bin"
wrapper() { # NAME ARGUMENT...: a program that calls zig; left alone where it is as it should be
  local file=$place/bin/$1 text
  printf -v text '#!/bin/sh\nexec "%s/venv/bin/python" -m ziglang %s "$@"' "$place" "${*:2}"
  [ "$(cat "$file" 2>/dev/null)" = "$text" ] || printf '%s\n' "$text" >"$file"
  chmod +x "$file"
}
wrapper cc cc -target "$target"
wrapper ar ar
wrapper ranlib ranlib
"$root/tools/licenses.sh" "$place" >"$place/LICENSES"

[ "$building" = true ] || exit 0
export CLG_PORTABLE=$place
cmake -S "$root" -B "$place/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  --toolchain "$root/cmake/toolchains/portable.cmake" -DCLG_BUILD_EXAMPLES=OFF "${@:3}"
cmake --build "$place/build"
