#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds all that is published of the Python package, and tests it where it will be used:
#
#   python/test_wheels.sh FOLDER
#
# - the source distribution, and a wheel of it by this machine's compiler
# - wheels for x86-64 and aarch64, into FOLDER/dist; python/tools/check_wheel.py reads their files
# - python/test.sh with the wheel: on this machine; as root, in fresh Debian 13, and in Debian 12 for
#   aarch64 by qemu-user-static, where a share of the tests runs, without those of signals,
#   processes and ONNX's cases
#
# FOLDER keeps the wheels, chroots and what was downloaded. Some ten minutes the first time, longer
# where qemu is. Ends with `N passed, N failed, N skipped`. Needs `tools/packages.sh install build
# run python portable wheels`.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -eq 1 ] || {
  echo "usage: python/test_wheels.sh FOLDER" >&2
  exit 2
}
mkdir -p -- "$1/dist" || exit 1
folder=$(cd -- "$1" && pwd)
cd -- "$root" || exit 1
# shellcheck source=/dev/null
. tools/chroot.bash
python=${PYTHON:-/usr/bin/python3}
export CLG_PORTABLE_DIR=${CLG_PORTABLE_DIR:-$folder/portable}
work=$(mktemp -d)
unmount() {
  local chroot
  for chroot in "$folder"/chroot-*/; do [ ! -d "$chroot" ] || chroot_unmount "${chroot%/}"; done
  rm -rf "$work"
}
trap unmount EXIT
# shellcheck source=/dev/null
. tools/checks.bash
skip() {
  echo "$*"
  exit 77
}
wheel() { find "$folder/dist" -name "clgraph-*manylinux*_$1.whl"; } # ARCH

build_sdist() (
  set -e
  "$python" -m venv "$work/builder"
  "$work/builder/bin/pip" install -q build pyelftools
  rm -rf "$folder/dist" "$work/native"
  # Without --wheel, the wheel is built of the source distribution.
  "$work/builder/bin/python" -m build --outdir "$work/native" .
  mkdir "$folder/dist"
  cp "$work"/native/*.tar.gz "$folder/dist/"
)
native_wheel() (
  set -e
  "$python" -m venv "$work/native-venv"
  "$work/native-venv/bin/pip" install -q "$work"/native/*.whl
  cd "$work"
  "$work/native-venv/bin/python" -c 'import clgraph; print(clgraph.__version__, clgraph.library_path)'
  "$work/native-venv/bin/cltool" --version
)
# The check is one: it refuses a wheel with the libraries of this machine.
refusal() {
  local words
  if words=$("$work/builder/bin/python" python/tools/check_wheel.py "$work"/native/*.whl 2>&1); then
    echo "$words"
    return 1
  fi
  grep -F 'is not manylinux' <<<"$words"
}
build_wheel() { python/build_wheel.sh --arch "$1" "$folder/dist"; }
here() {
  [ -n "$(wheel "$(uname -m)")" ] || skip "no wheel for $(uname -m)"
  PYTHON=$python python/test.sh --wheel "$(wheel "$(uname -m)")"
}

# Sources of the tests, but nothing that was built, in a fresh system.
in_chroot() ( # SUITE ARCHITECTURE ARCH PACKAGE... -- ARGUMENT... of pytest
  set -e
  suite=$1 architecture=$2 arch=$3
  shift 3
  packages=()
  while [ "$1" != -- ]; do
    packages+=("$1")
    shift
  done
  shift
  chroot_check || exit 77
  [ -n "$(wheel "$arch")" ] || skip "no wheel for $arch"
  [ "$arch" = "$(uname -m)" ] || [ -e "/proc/sys/fs/binfmt_misc/qemu-$arch" ] ||
    skip "qemu-user-static and binfmt-support are not here"
  place=$folder/chroot-$suite-$arch
  [ -e "$place.complete" ] || {
    rm -rf "$place"
    chroot_make "$suite" "$place" "$architecture"
    touch "$place.complete"
  }
  chroot_mount "$place"
  chroot_run "$place" apt-get -q update
  chroot_run "$place" DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
    ca-certificates "${packages[@]}"
  mapfile -t pip < <(chroot_pip "$place")
  rm -rf "$place/opt/tests"
  mkdir "$place/opt/tests"
  tar -c --exclude=__pycache__ --exclude=python/dist python include examples | tar -x -C "$place/opt/tests"
  cp "$(wheel "$arch")" "$place/opt/"
  chroot_run "$place" "${pip[@]}" bash /opt/tests/python/test.sh --wheel "/opt/$(basename "$(wheel "$arch")")" "$@"
)
mapfile -t trixie < <(tools/packages.sh --suite trixie list run python)
mapfile -t bookworm < <(tools/packages.sh --suite bookworm list run python)

if check "source distribution" build_sdist; then
  check "its wheel" native_wheel
  check "check_wheel.py refuses it" refusal
fi
check "wheel for x86_64" build_wheel x86_64
check "wheel for aarch64" build_wheel aarch64
check "tests here" here
check "tests in Debian 13" in_chroot trixie amd64 x86_64 "${trixie[@]}" --
check "tests for aarch64" in_chroot bookworm arm64 aarch64 "${bookworm[@]}" -- \
  --ignore=/opt/tests/python/tests/test_process.py \
  -k 'not (OnnxBackend or sklearn or memory)'
checks_finish
