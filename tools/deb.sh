#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages in a fresh system, and tests them in another one:
#
#   tools/deb.sh [--suite bookworm|trixie] [--worktree] FOLDER
#
# Into FOLDER/SUITE, kept afterwards: `packages` has source and binary packages of HEAD, or with
# --worktree of the files as they are now; `base` the minimal system, used again by the next call;
# `build` and `test` the systems that were worked in. Checks: the build; lintian; installation with
# what the packages recommend; each test of debian/tests; removal, after which no file is left.
# Prints times, and `N passed, N failed, N skipped` last. Needs root and debootstrap.
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
# shellcheck source=/dev/null
. tools/chroot.bash
# shellcheck source=/dev/null
. tools/checks.bash

usage() {
  echo "usage: tools/deb.sh [--suite bookworm|trixie] [--worktree] FOLDER" >&2
  exit 2
}
suite=bookworm
worktree=
while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=${2:-} && shift ;;
    --worktree) worktree=yes ;;
    -*) usage ;;
    *) break ;;
  esac
  shift
done
[ $# -eq 1 ] || usage
suite=$(chroot_suite "$suite") || usage
chroot_check || exit 1
mkdir -p -- "$1/$suite/packages" || exit 1
folder=$(cd -- "$1/$suite" && pwd)
leave() {
  chroot_unmount "$folder/build"
  chroot_unmount "$folder/test"
}
trap leave EXIT
version=$(sed -nE '1s/.*\((.*)-[^-]*\).*/\1/p' debian/changelog)
place=/opt/work/clgraph-$version

source_files() { # names, each ended by a zero byte
  if [ -n "$worktree" ]; then
    git ls-files -z --cached --others --exclude-standard
  else
    git ls-tree -r -z --name-only HEAD
  fi
}
unpack() { # FOLDER: the source, in a folder of the version's name
  mkdir -p "$1"
  if [ -n "$worktree" ]; then
    source_files | tar -c --null -T - --ignore-failed-read
  else
    git archive HEAD
  fi | tar -x -C "$1"
}

base() {
  [ -e "$folder/base.complete" ] && return
  rm -rf "$folder/base"
  chroot_make "$suite" "$folder/base" && touch "$folder/base.complete"
}
fresh() { # NAME
  chroot_unmount "$folder/$1"
  rm -rf "${folder:?}/$1"
  cp -a --reflink=auto "$folder/base" "$folder/$1"
  chroot_mount "$folder/$1"
  chroot_run "$folder/$1" apt-get -q update
}
apt() { # NAME ARGUMENT...
  chroot_run "$folder/$1" DEBIAN_FRONTEND=noninteractive apt-get -q -y "${@:2}"
}

build() (
  set -e
  fresh build
  apt build install --no-install-recommends build-essential
  unpack "$folder/build$place"
  tar -c -z --sort=name --mtime=@0 --owner=0 --group=0 -C "$folder/build/opt/work" --exclude="clgraph-$version/debian" \
    -f "$folder/build/opt/work/clgraph_$version.orig.tar.gz" "clgraph-$version"
  apt build build-dep --no-install-recommends "$place"
  chroot_run "$folder/build" sh -c "cd $place && dpkg-buildpackage -us -uc"
  rm -f "$folder/packages"/*
  cp "$folder/build/opt/work"/clgraph_* "$folder/build/opt/work"/*.deb "$folder/packages/"
)
# No request of Debian's bug tracker is closed since nothing is uploaded there.
run_lintian() (
  set -e
  apt build install --no-install-recommends lintian
  chroot_run "$folder/build" sh -c 'cd /opt/work && lintian --allow-root -I --pedantic --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning clgraph_*.changes'
)

# Files of the system but those of apt, dpkg and the machine.
list_files() {
  (cd "$folder/test" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./opt -o -path ./tmp \
    -o -path ./var/cache -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/log \
    -o -path ./root/.cache -o -name __pycache__ \) -prune -o -print | sort)
}
prepare_test() (
  set -e
  fresh test
  # What the tests need besides, and what the packages depend on and recommend: not ours to remove.
  apt test install --no-install-recommends gcc libc6-dev make cmake pkgconf libstb-dev python3-numpy \
    libpcre2-dev zlib1g-dev libjansson-dev libutf8proc-dev opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd libclblast1
  list_files >"$folder/before"
  unpack "$folder/test/opt/source"
  cp "$folder"/packages/*.deb "$folder/test/opt/"
)
install_packages() {
  rm -f "$folder/test"/opt/*-dbgsym_*.deb
  apt test install --install-recommends -s /opt/libclgraph0.1_*.deb
  chroot_run "$folder/test" sh -c 'DEBIAN_FRONTEND=noninteractive apt-get -q -y install /opt/*.deb'
}
run_test() {
  chroot_run "$folder/test" sh -c "cd /opt/source && rm -rf /tmp/work && mkdir /tmp/work &&
    AUTOPKGTEST_TMP=/tmp/work debian/tests/$1"
}
remove_packages() (
  set -e
  apt test purge --auto-remove libclgraph0.1 libclgraph0.1-images libclgraph-dev clgraph-tools python3-clgraph
  list_files >"$folder/after"
  diff "$folder/before" "$folder/after"
)

timed() { # NAME COMMAND...
  local start=$SECONDS
  check "$@"
  local code=$?
  echo "      $((SECONDS - start)) s"
  return $code
}
timed "a minimal $suite" base && timed "packages" build && {
  timed "lintian" run_lintian
  timed "a fresh system" prepare_test && timed "installation" install_packages && {
    for name in $(sed -nE 's/^Tests: //p' debian/tests/control | tr -d ,); do timed "test $name" run_test "$name"; done
    timed "removal leaves nothing" remove_packages
  }
}
du -h "$folder"/packages/*.deb 2>/dev/null
checks_finish
