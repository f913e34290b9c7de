#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves the two commands of the README on a fresh system:
#
#   tools/chroot-test.sh [--worktree] [--once] [--suite NAME] FOLDER [CTEST ARGUMENTS]
#
# debootstraps a minimal system into FOLDER (new or empty, kept afterwards), copies HEAD into it, or
# with --worktree the files as they are now, to a path with a space, runs tools/quickstart.sh and
# tools/test.sh (with the arguments: --all for every test) there, each twice, or with --once the
# tests once, and prints their last lines. Needs root and debootstrap. Packages come from where this
# machine's apt takes them.
#
# Suites: bookworm (Debian 12, the default), trixie (13), forky (testing), noble (Ubuntu 24.04,
# whose mirror is CLG_MIRROR, by default http://archive.ubuntu.com/ubuntu). CLG_MIRROR names another
# mirror.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname -- "${BASH_SOURCE[0]}")/chroot.bash"

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
suite=$(chroot_suite "$suite") || usage
[ $# -ge 1 ] || usage
chroot_check
mkdir -p -- "$1"
root=$(cd -- "$1" && pwd)
shift
if [ -n "$(ls -A "$root")" ]; then
  echo "chroot-test.sh: $root is not empty" >&2
  exit 1
fi
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
chroot_make "$suite" "$root"
trap 'chroot_unmount "$root"' EXIT
chroot_mount "$root"

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
  if chroot_run "$root" bash "$place/tools/$command.sh" "${arguments[@]}" >"$root.log" 2>&1; then
    echo "==== tools/$command.sh: done in $((SECONDS - start)) s"
  else
    echo "==== tools/$command.sh: FAILED after $((SECONDS - start)) s"
    status=1
  fi
  tail -n 25 "$root.log"
done
exit $status
