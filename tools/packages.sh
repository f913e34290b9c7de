#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The one list of packages that clgraph needs, for each Debian and Ubuntu release that it supports.
#
#   tools/packages.sh [--suite NAME] list GROUP...   prints the packages of the groups
#   tools/packages.sh install GROUP...               installs those that are missing (sudo only when
#                                                    not root)
#
# Groups: build (compile everything but the tests), run (predict on a plain CPU), test, quick (the
# part of test that tools/test.sh needs without arguments), drivers (in addition to build and run,
# for tools/drivers.sh), lint, vendors (compilers of GPU vendors, for
# tools/portability.sh), windows (in addition to build, for tools/windows.sh), onnxruntime (headers
# for the execution provider; where the release has none that are new enough, or CLG_ORT_PREFIX is
# set, those of Debian sid alone, into $CLG_ORT_PREFIX/include/clgraph-onnxruntime, by default of
# /usr/local), python (in addition to build, for the scripts of python/), portable (in addition to
# build, for tools/portable.sh), static (Debian 12's libraries and headers that tools/portable.sh
# unpacks for another processor; to be listed, not to be installed), wheels (in addition to build,
# run, python and portable, for python/test_wheels.sh), site (in addition to build, for
# docs/site/build.sh), packages (for tools/deb.sh, tools/archives.sh and tools/release.sh, with the
# groups that they name).
#
# Suites: bookworm (Debian 12), trixie (13), forky (testing, and sid), noble (Ubuntu 24.04); by
# default the machine's. Another Debian or Ubuntu release gets the names of forky. A package of
# another group than build and run that the machine's sources do not have is left out with a line: the
# tests that need it are skipped by name. One of build or run is an error.
set -euo pipefail

usage() {
  echo "usage: tools/packages.sh [--suite NAME] list GROUP... | install GROUP..." >&2
  echo "groups: build run test quick drivers lint vendors windows onnxruntime python portable static wheels site packages; suites: bookworm trixie forky noble" >&2
  exit 2
}

# The suite of this machine.
detect_suite() {
  local name=
  # shellcheck source=/dev/null
  [ ! -r /etc/os-release ] || name=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  case $name in
    bookworm | trixie | forky | noble) echo "$name" ;;
    *) echo forky ;;
  esac
}

packages_of() { # GROUP SUITE
  case $1 in
    build)
      echo gcc libc6-dev cmake ninja-build pkg-config opencl-headers ocl-icd-opencl-dev \
        libclblast-dev libjansson-dev zlib1g-dev libpcre2-dev libutf8proc-dev libstb-dev libxxhash-dev libjpeg-dev libpng-dev libwebp-dev libtiff-dev libopenjp2-7-dev
      ;;
    run) echo ocl-icd-libopencl1 libclblast1 pocl-opencl-icd ;;
    quick) echo libcmocka-dev ;;
    test)
      # Scripts of tests/ call perl, python3 and diff, one mpirun; mesa-opencl-icd has rusticl. fish
      # and zsh complete cltool, man and mandoc check its pages.
      packages_of quick "$2"
      echo g++ libonnx-testdata mesa-opencl-icd openmpi-bin python3 python3-pil python3-torch python3-torchvision valgrind make perl diffutils python3-markdown-it python3-numpy python3-pyopencl fish zsh man-db mandoc
      # Oclgrind has left Debian after 12. PyTorch's exporter imports onnx from 2.0 on.
      case $2 in
        bookworm) echo oclgrind ;;
        noble) echo oclgrind python3-onnx ;;
        *) echo python3-onnx ;;
      esac
      ;;
    drivers)
      echo libonnx-testdata mesa-opencl-icd
      case $2 in bookworm | noble) echo oclgrind ;; esac
      ;;
    # clang, its runtime and llvm (llvm-cov) are for tests/fuzz too, binutils for lint.hardening,
    # the last two for lint.msvc_headers.
    lint) echo clang clang-format clang-tidy shellcheck llvm libclang-rt-dev binutils libc++-dev mingw-w64-x86-64-dev ;;
    vendors)
      # tools/portability.sh takes AMD's and NVIDIA's targets through clang 15.
      echo intel-opencl-icd
      case $2 in bookworm | noble) echo clang-15 libclc-15 rocm-device-libs ;; esac
      ;;
    onnxruntime) case ${CLG_ORT_PREFIX:+unpacked}$2 in forky) echo libonnxruntime-dev ;; esac ;;
    python) echo python3 python3-venv ;;
    portable) echo python3 python3-venv dpkg ;; # ziglang is PyPI's
    wheels) echo debootstrap qemu-user-static binfmt-support ;;
    packages) echo debootstrap rpm cpio abigail-tools git ;;
    static)
      echo zlib1g-dev libpcre2-dev libjansson-dev libutf8proc-dev libstb-dev opencl-c-headers libclblast-dev \
        libxxhash-dev
      ;;
    site)
      echo doxygen python3 python3-numpy python3-sphinx python3-myst-parser python3-breathe furo \
        python3-sphinx-copybutton python3-matplotlib
      ;;
    windows) echo gcc-mingw-w64-x86-64-posix libz-mingw-w64-dev dpkg-dev patch wine wine64 ;;
    *)
      echo "packages.sh: no group '$1'; there are build, run, test, quick, drivers, lint, vendors, windows, onnxruntime, python, portable, static, wheels, site and packages" >&2
      return 2
      ;;
  esac
}

suite=$(detect_suite)
if [ "${1:-}" = --suite ]; then
  suite=${2:-}
  case $suite in
    bookworm | trixie | forky | noble) ;;
    testing | sid) suite=forky ;;
    *) usage ;;
  esac
  [ "${3:-}" = list ] || usage
  shift 2
fi
[ $# -ge 2 ] || usage
command=$1
shift
wanted=()   # all of them
optional=() # those that may be left out
for group in "$@"; do
  names=$(packages_of "$group" "$suite") || exit 2
  read -d '' -ra names <<<"$names" || true
  wanted+=("${names[@]}")
  case $group in build | run) ;; *) optional+=("${names[@]}") ;; esac
done

# Unpacks the headers of Debian sid's libonnxruntime-dev, with package lists of their own: neither
# the package nor its suite becomes part of this machine.
install_onnxruntime_headers() {
  local prefix=${CLG_ORT_PREFIX:-/usr/local}/include/clgraph-onnxruntime work apt=()
  [ ! -f "$prefix/onnxruntime/onnxruntime_ep_c_api.h" ] || return 0
  # shellcheck source=/dev/null
  . "$(dirname -- "${BASH_SOURCE[0]}")/apt.bash"
  work=$(mktemp -d)
  if (cd "$work" && apt_private "$work" deb sid && "${apt[@]}" download libonnxruntime-dev) >&2 &&
    dpkg -x "$work"/libonnxruntime-dev_*.deb "$work/tree" && mkdir -p "$prefix" &&
    cp -r "$work/tree/usr/include/onnxruntime" "$prefix/" &&
    cp "$work/tree/usr/share/doc/libonnxruntime-dev/copyright" "$prefix/"; then
    echo "Unpacked ONNX Runtime's headers into $prefix"
  else
    echo "packages.sh: left out, could not be fetched or written: headers of ONNX Runtime, $prefix" >&2
  fi
  rm -rf "$work"
}

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

case "${CLG_ORT_PREFIX:+unpacked}$suite $* " in
  forky*) ;;
  *" onnxruntime "*) install_onnxruntime_headers ;;
esac

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

# Moves optional packages that no source has from `missing` to `absent`.
absent=()
leave_out_absent() {
  local package policy kept=()
  absent=()
  for package in "${missing[@]}"; do
    policy=$(LC_ALL=C apt-cache policy "$package" 2>/dev/null || true)
    if [[ " ${optional[*]} " == *" $package "* && $policy != *"Candidate: "[!\(]* ]]; then
      absent+=("$package")
    else
      kept+=("$package")
    fi
  done
  missing=("${kept[@]}")
}
report_absent() {
  [ ${#absent[@]} -eq 0 ] ||
    echo "packages.sh: left out, this release does not have: ${absent[*]} (tests that need them are skipped)" >&2
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    leave_out_absent
    report_absent
    [ ${#missing[@]} -gt 0 ] || exit 0
    echo "packages.sh: these packages are missing: ${missing[*]}" >&2
    echo "packages.sh: installing them needs root, and sudo is not there; as root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
# A source that fails to update need not be one that is needed: installing decides.
"${apt[@]}" update || echo "packages.sh: apt-get update failed in part; trying to install" >&2
leave_out_absent
report_absent
[ ${#missing[@]} -gt 0 ] || exit 0
echo "Installing${as_root[*]:+ with sudo}: ${missing[*]}"
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
  echo "packages.sh: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
