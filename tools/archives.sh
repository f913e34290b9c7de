#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds archives for other systems than Debian, and tests them:
#
#   tools/archives.sh [--only linux|windows] FOLDER
#
# FOLDER/dist gets clgraph-VERSION-linux-x86_64.tar.gz and .rpm, for glibc 2.28 and newer
# (tools/portable.sh), and clgraph-VERSION-windows-x86_64.zip (docs/windows.md). Each is unpacked, and
# programs are built with it: by find_package, by pkg-config. cltool runs a model, that of Windows
# under Wine. FOLDER also keeps what was built. Ends with `N passed, N failed, N skipped`. Needs
# `tools/packages.sh install build run portable windows packages`, and network the first time.
set -uo pipefail
usage() {
  echo "usage: tools/archives.sh [--only linux|windows] FOLDER" >&2
  exit 2
}
only=
if [ "${1:-}" = --only ]; then
  only=${2:-}
  shift 2 || usage
fi
[ $# -eq 1 ] || usage
mkdir -p -- "$1/dist" || exit 1
folder=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
tree=$PWD
# shellcheck source=/dev/null
. tools/checks.bash
work=$(mktemp -d)
export WINEPREFIX=$folder/wine WINEDEBUG=-all WINEARCH=win64 DISPLAY=''
leave() {
  ! command -v wineserver >/dev/null || wineserver -k
  rm -rf "$work"
}
trap leave EXIT
unset CLG_DEVICE
export CLG_CACHE_DIR=$work/cache
SOURCE_DATE_EPOCH=$(git show -s --format=%ct HEAD)
export SOURCE_DATE_EPOCH # of files in archives
digits=$tree/examples/digits
answers=(-i "image=$digits/heldout.npy" --expect "probabilities=$digits/heldout_probabilities.npy" --rtol 1e-3 --atol 1e-5)
words='probabilities has 10 elements'

pack() { # BUILD GENERATORS
  (cd "$1" && cpack -G "$2" -B "$folder/packs") && find "$folder/packs" -maxdepth 1 -type f -exec mv {} "$folder/dist/" \;
}

# ---- Linux ---------------------------------------------------------------------------------------

# Libraries are in lib where any system's CMake looks, in an .rpm in lib64.
linux_build() {
  # The cltool that is built runs here, and prints its man pages.
  local folders=(-DCMAKE_INSTALL_PREFIX=/usr -DCLG_LICENSES="$folder/linux/licenses" -DCMAKE_CROSSCOMPILING_EMULATOR=env)
  tools/portable.sh --toolchain x86_64 "$folder/linux" &&
    tools/licenses.sh "$folder/linux" "$folder/linux/licenses" >/dev/null &&
    rm -f "$folder"/dist/*.tar.gz "$folder"/dist/*.rpm &&
    tools/portable.sh x86_64 "$folder/linux" "${folders[@]}" -DCMAKE_INSTALL_LIBDIR=lib && pack "$folder/linux/build" TGZ &&
    tools/portable.sh x86_64 "$folder/linux" "${folders[@]}" -DCMAKE_INSTALL_LIBDIR=lib64 && pack "$folder/linux/build" RPM
}
programs() { # LIB: with its headers and library
  cmake -S examples/installed -B "$work/by-cmake" --fresh -Dclgraph_DIR="$1/cmake/clgraph" &&
    cmake --build "$work/by-cmake" && "$work/by-cmake/predict" "$digits/digits.onnx" | grep "$words" &&
    rm -rf "$work/by-make" && cp -r examples/installed "$work/by-make" &&
    PKG_CONFIG_PATH=$1/pkgconfig make -C "$work/by-make" predict &&
    LD_LIBRARY_PATH=$1 "$work/by-make/predict" "$digits/digits.onnx" | grep "$words"
}
tar_gz() {
  mkdir -p "$work/tar" && tar -x -C "$work/tar" --strip-components=1 -f "$folder"/dist/clgraph-*-linux-x86_64.tar.gz &&
    find "$work/tar" -type f | sort && [ -s "$work/tar/share/doc/clgraph/licenses/zlib.txt" ] && [ -s "$work/tar/share/man/man1/cltool.1" ] &&
    "$work/tar/bin/cltool" devices && "$work/tar/bin/cltool" run "$digits/digits.onnx" "${answers[@]}" &&
    programs "$work/tar/lib"
}
rpm_package() {
  if ! command -v rpm2cpio >/dev/null || ! command -v cpio >/dev/null; then
    echo "no rpm2cpio or cpio"
    return 77
  fi
  local file
  file=$(find "$folder/dist" -name '*.rpm')
  rpm -qp --info --requires --provides --suggests "$file" || return
  # Of libraries, glibc's and our own.
  ! rpm -qp --requires "$file" | grep -vE '^(lib(c|m|dl|pthread|clgraph)\.so|rpmlib|rtld|ld-linux|/bin/sh)' || return
  mkdir -p "$work/rpm" && (cd "$work/rpm" && rpm2cpio "$file" | cpio -idm --quiet) &&
    "$work/rpm/usr/bin/cltool" run "$digits/digits.onnx" "${answers[@]}" && programs "$work/rpm/usr/lib64"
}

# ---- Windows -------------------------------------------------------------------------------------

target=x86_64-w64-mingw32
windows_build() {
  local tool licence
  for tool in "$target-gcc-posix" wine; do
    command -v "$tool" >/dev/null || {
      echo "no $tool"
      return 77
    }
  done
  # The texts of what is linked into the files, from Debian's packages.
  rm -rf "$folder/windows/licenses" && mkdir -p "$folder/windows/licenses" || return
  for licence in zlib:libz-mingw-w64-dev PCRE2:libpcre2-dev jansson:libjansson-dev utf8proc:libutf8proc-dev stb:libstb-dev \
    xxHash:libxxhash-dev mingw-w64:mingw-w64-common gcc:gcc-mingw-w64-base; do
    cp "/usr/share/doc/${licence#*:}/copyright" "$folder/windows/licenses/${licence%:*}.txt" || return
  done
  tools/windows-deps.sh "$folder/windows/deps" &&
    CLG_WINDOWS_DEPS="$folder/windows/deps" cmake -S . -B "$folder/windows/build" -G Ninja --log-level=WARNING \
      --toolchain cmake/toolchains/mingw-w64.cmake -DCMAKE_BUILD_TYPE=Release -DCLG_BUILD_EXAMPLES=OFF \
      -DCLG_LICENSES="$folder/windows/licenses" &&
    cmake --build "$folder/windows/build" && rm -f "$folder"/dist/*.zip && pack "$folder/windows/build" ZIP
}
start_wine() {
  setsid wineserver -p
  setsid wine wineboot -i
}
windows_zip() {
  local top=$work/zip code=0
  mkdir -p "$top" && (cd "$top" && cmake -E tar xf "$folder"/dist/clgraph-*-windows-x86_64.zip) || return
  top=$(find "$top" -mindepth 1 -maxdepth 1 -type d)
  find "$top" -type f | sort
  [ -s "$top/lib/libclgraph.dll.a" ] && [ -s "$top/lib/clgraph.def" ] && [ -s "$top/share/doc/clgraph/licenses/zlib.txt" ] || return
  wine "$top/bin/cltool.exe" --version | grep '^cltool ' || return
  # Programs, by MinGW: with CMake, with pkg-config; the DLL is beside them.
  cmake -S examples/installed -B "$work/win-cmake" -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER="$target-gcc-posix" \
    -DCMAKE_PREFIX_PATH="$top" -DCMAKE_FIND_ROOT_PATH="$top" && cmake --build "$work/win-cmake" || return
  # shellcheck disable=SC2046 # options, one word each
  PKG_CONFIG_LIBDIR=$top/lib/pkgconfig "$target-gcc-posix" -std=c11 examples/installed/predict.c -o "$work/win-cmake/by-pc.exe" \
    $(PKG_CONFIG_LIBDIR=$top/lib/pkgconfig pkg-config --cflags --libs clgraph) || return
  cp "$top"/bin/* "$work/win-cmake/"
  wine "$top/bin/cltool.exe" devices || code=$?
  if [ "$code" -eq 3 ]; then
    echo "Wine shows no OpenCL device: no model was run"
    code=0
    wine "$work/win-cmake/predict.exe" "$digits/digits.onnx" 2>"$work/words" || code=$?
    [ "$code" -eq 1 ] && grep OpenCL "$work/words"
    return
  fi
  [ "$code" -eq 0 ] && wine "$top/bin/cltool.exe" run "$digits/digits.onnx" "${answers[@]}" &&
    wine "$work/win-cmake/predict.exe" "$digits/digits.onnx" | grep "$words" &&
    wine "$work/win-cmake/by-pc.exe" "$digits/digits.onnx" | grep "$words"
}

if [ "$only" != windows ] && check "Linux: building" linux_build; then
  check "Linux: .tar.gz" tar_gz
  check "Linux: .rpm" rpm_package
fi
if [ "$only" != linux ] && check "Windows: building" windows_build; then
  check "Wine starts" start_wine && check "Windows: .zip" windows_zip
fi
ls -l "$folder/dist"
checks_finish
