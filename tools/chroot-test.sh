#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves the two commands of the README on a fresh system:
#
#   tools/chroot-test.sh [--worktree] [--once] [--suite NAME] FOLDER [CTEST ARGUMENTS]
#
# debootstraps a minimal system into FOLDER (new or empty, kept afterwards), copies HEAD into it, or
# with --worktree the files as they are now, to a path with a space, runs tools/quickstart.sh and
# tools/test.sh (with the arguments, which may choose tests) there, each twice, or with --once the
# tests once, and prints their last lines. Needs root and debootstrap. Packages come from where this
# machine's apt takes them.
#
# Suites: bookworm (Debian 12, the default), trixie (13), forky (testing), noble (Ubuntu 24.04,
# whose mirror is CLG_MIRROR, by default http://archive.ubuntu.com/ubuntu). CLG_MIRROR names another
# mirror.
set -euo pipefail

usage() {
  echo "usage: tools/chroot-test.sh [--worktree] [--once] [--suite NAME] FOLDER [CTEST ARGUMENTS]" >&2
  exit 2
}
worktree=
commands=(quickstart quickstart test test)
suite=bookworm
while [ $# -gt 0 ]; do
  case $1 in
    --worktree) worktree=yes ;;
    --once) commands=(quickstart quickstart test) ;;
    --suite) suite=${2:-} && shift ;;
    -*) usage ;;
    *) break ;;
  esac
  shift
done
case $suite in
  bookworm | trixie | forky | noble) ;;
  testing) suite=forky ;;
  *) usage ;;
esac
[ $# -ge 1 ] || usage
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "chroot-test.sh: needs root and the package debootstrap" >&2
  exit 1
fi
mkdir -p -- "$1"
root=$(cd -- "$1" && pwd)
shift
if [ -n "$(ls -A "$root")" ]; then
  echo "chroot-test.sh: $root is not empty" >&2
  exit 1
fi
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# The first Debian mirror of this machine's apt, one-line or deb822 format.
mirror=${CLG_MIRROR:-}
[ -n "$mirror" ] || [ "$suite" != noble ] || mirror=http://archive.ubuntu.com/ubuntu
[ -n "$mirror" ] || mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  grep -E '^(deb |URIs:)' | grep -oE 'https?://[^ ]+' | grep -E '/debian/?$' | head -n 1 || true)
if [ -z "$mirror" ]; then
  echo "chroot-test.sh: no Debian mirror in this machine's apt sources; CLG_MIRROR names one" >&2
  exit 1
fi
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[ -z "${proxy:-}" ] || export http_proxy=$proxy https_proxy=$proxy

# debootstrap may be older than the suite: all of Debian's are bootstrapped alike, and all of
# Ubuntu's.
arguments=("$suite" "$root" "$mirror")
scripts=/usr/share/debootstrap/scripts
components=main
if [ "$suite" = noble ]; then
  components=main,universe # nearly all of what is needed is in universe
  [ -e "$scripts/noble" ] || arguments+=("$scripts/gutsy")
else
  [ -e "$scripts/$suite" ] || arguments+=("$scripts/sid")
fi
echo "$suite into $root"
if ! debootstrap --variant=minbase --components="$components" "${arguments[@]}" >"$root.log" 2>&1; then
  tail -n 20 "$root.log" >&2
  exit 1
fi
[ -z "${proxy:-}" ] || echo "Acquire::http::Proxy \"$proxy\";" >"$root/etc/apt/apt.conf.d/90proxy"
cp /etc/resolv.conf "$root/etc/resolv.conf"

unmount() {
  for point in dev/shm sys proc; do
    mountpoint -q "$root/$point" && umount "$root/$point"
  done
  return 0
}
trap unmount EXIT
mkdir -p "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/dev/shm"

place="/opt/clgraph source"
mkdir "$root$place"
if [ -n "$worktree" ]; then
  git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read
else
  git archive HEAD
fi | tar -x -C "$root$place"

status=0
for command in "${commands[@]}"; do
  start=$SECONDS
  arguments=()
  [ "$command" = quickstart ] || arguments=("$@")
  if chroot "$root" env -i HOME=/root PATH="$PATH" LANG=C.UTF-8 bash "$place/tools/$command.sh" "${arguments[@]}" \
    >"$root.log" 2>&1; then
    echo "==== tools/$command.sh: done in $((SECONDS - start)) s"
  else
    echo "==== tools/$command.sh: FAILED after $((SECONDS - start)) s"
    status=1
  fi
  tail -n 25 "$root.log"
done
exit $status
