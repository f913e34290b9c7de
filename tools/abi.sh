#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares the interface of libclgraph with that of the release before:
#
#   tools/abi.sh FOLDER [COMMIT]
#
# Builds HEAD and the newest tag `v*` before it (or COMMIT) in FOLDER, with debug information, and
# prints what abidiff says of the public headers' functions and types. With the same SONAME, a change
# is a failure, and an added function is none. Members appended to a struct with struct_size are
# compatible, which abidiff cannot know: once read, CLG_ABI_ACCEPT=1 accepts changes of types, but
# no removed function. Without a release it says so. Needs the packages `tools/packages.sh list
# build packages`.
set -euo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: tools/abi.sh FOLDER [COMMIT]" >&2
  exit 2
fi
mkdir -p -- "$1"
folder=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
old=${2:-$(git describe --tags --match 'v[0-9]*' --abbrev=0 HEAD^ 2>/dev/null || true)}
if [ -z "$old" ]; then
  echo "abi.sh: no release before this one: nothing to compare with"
  exit 0
fi
command -v abidiff >/dev/null || {
  echo "abi.sh: no abidiff; run tools/packages.sh install packages" >&2
  exit 77
}

build() { # COMMIT NAME
  rm -rf "${folder:?}/$2"
  mkdir -p "$folder/$2/source"
  git archive "$1" | tar -x -C "$folder/$2/source"
  cmake -S "$folder/$2/source" -B "$folder/$2/build" -G Ninja --log-level=WARNING \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLG_BUILD_EXAMPLES=OFF -DCLG_BUILD_TOOLS=OFF -DCLG_BUILD_ORT=OFF >/dev/null
  cmake --build "$folder/$2/build" --target clgraph >"$folder/$2/log" 2>&1 || {
    tail -n 20 "$folder/$2/log" >&2
    return 1
  }
}
soname() { readelf -d "$folder/$1/build/libclgraph.so" | sed -nE 's/.*SONAME.*\[(.*)\]/\1/p'; }
build "$old" old
build HEAD new
compare() { # OPTION...
  abidiff --headers-dir1 "$folder/old/source/include" --headers-dir2 "$folder/new/source/include" "$@" \
    "$folder/old/build/libclgraph.so" "$folder/new/build/libclgraph.so"
}
compare || true
code=0
compare --no-added-syms >/dev/null || code=$?
# Bits of abidiff's exit code: 1 error, 2 wrong usage, 4 some change, 8 one that is surely
# incompatible.
if [ $((code & 3)) -ne 0 ]; then
  exit 1
elif [ "$code" -eq 0 ]; then
  echo "abi.sh: compatible with $old"
elif [ "$(soname old)" != "$(soname new)" ]; then
  echo "abi.sh: changed since $old; the SONAME is $(soname new), it was $(soname old)"
elif [ $((code & 8)) -eq 0 ] && [ "${CLG_ABI_ACCEPT:-}" = 1 ]; then
  echo "abi.sh: types changed since $old, as accepted"
else
  echo "abi.sh: changed since $old, and the SONAME is still $(soname new)"
  exit 1
fi
