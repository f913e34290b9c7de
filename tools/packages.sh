#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The one list of Debian packages that clgraph needs.
#
#   tools/packages.sh list GROUP...      prints the packages of the groups
#   tools/packages.sh install GROUP...   installs those that are missing (sudo only when not root)
#
# Groups: build (compile everything but the tests), run (predict on a plain CPU), test, lint, vendors (compilers of GPU
# vendors, for tools/portability.sh), windows (beside build, for tools/windows.sh).
set -euo pipefail

packages_of() {
  case $1 in
    build)
      echo gcc libc6-dev cmake ninja-build pkg-config opencl-headers ocl-icd-opencl-dev \
        libclblast-dev libjansson-dev zlib1g-dev libpcre2-dev libstb-dev libxxhash-dev
      ;;
    run) echo ocl-icd-libopencl1 libclblast1 pocl-opencl-icd ;;
    test) echo libcmocka-dev libonnx-testdata mesa-opencl-icd oclgrind python3-torch valgrind make ;;
    lint) echo clang clang-format clang-tidy shellcheck ;;
    vendors) echo clang-15 intel-opencl-icd libclc-15 rocm-device-libs ;;
    windows) echo gcc-mingw-w64-x86-64-posix libz-mingw-w64-dev dpkg-dev patch wine wine64 ;;
    *)
      echo "packages.sh: no group '$1'; there are build, run, test, lint, vendors and windows" >&2
      return 2
      ;;
  esac
}

usage() {
  echo "usage: tools/packages.sh list|install GROUP...   (groups: build run test lint vendors windows)" >&2
  exit 2
}

[ $# -ge 2 ] || usage
command=$1
shift
wanted=()
for group in "$@"; do
  names=$(packages_of "$group") || exit 2
  read -ra names <<<"$names"
  wanted+=("${names[@]}")
done

case $command in
  list)
    printf '%s\n' "${wanted[@]}"
    exit 0
    ;;
  install) ;;
  *) usage ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "packages.sh: not a Debian system; what is needed goes by these names there: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "packages.sh: these packages are missing: ${missing[*]}" >&2
    echo "packages.sh: installing them needs root, and sudo is not there; as root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
  echo "Installing with sudo: ${missing[*]}"
else
  echo "Installing: ${missing[*]}"
fi

apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
# A source that fails to update need not be one that is needed: installing decides.
"${apt[@]}" update || echo "packages.sh: apt-get update failed in part; trying to install" >&2
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
  echo "packages.sh: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
