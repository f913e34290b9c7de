#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows that a commit gives the same bytes wherever it is built:
#
#   tools/reproducible.sh FOLDER
#
# Builds HEAD twice in FOLDER, in folders of different length, at different times, with another time
# zone, locale, umask and number of jobs; compares the files that are installed (the static library
# among them), the archive of cpack, that of the source and the bill of materials. Prints what
# differs. Needs the packages `tools/packages.sh list build`.
set -euo pipefail
[ $# -eq 1 ] || {
  echo "usage: tools/reproducible.sh FOLDER" >&2
  exit 2
}
mkdir -p -- "$1"
folder=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
# Of one commit, whatever happens in the tree meanwhile.
rm -rf "$folder/clone"
git clone -q --shared . "$folder/clone"
cd -- "$folder/clone"
SOURCE_DATE_EPOCH=$(git show -s --format=%ct HEAD)
export SOURCE_DATE_EPOCH

build() { # PLACE JOBS
  local place=$1
  rm -rf "$place"
  mkdir -p "$place/source"
  git archive HEAD | tar -x -m -C "$place/source"
  cmake -S "$place/source" -B "$place/build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
    -DCLG_BUILD_STATIC=ON -DCLG_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX=/usr >/dev/null
  cmake --build "$place/build" --parallel "$2" >"$place/log" 2>&1 || {
    tail -n 20 "$place/log" >&2
    return 1
  }
  DESTDIR=$place/installed cmake --install "$place/build" >/dev/null
  (cd "$place/build" && cpack -G TGZ -B "$place/packs" >/dev/null)
  rm -rf "$place/packs/_CPack_Packages"
  tools/release.sh --source "$place/packs"
}
sums() { (cd "$1" && find installed packs -type f -print0 | sort -z | xargs -0 sha256sum); }

first=$folder/a
second=$folder/a/much/longer/folder
rm -rf "$first"
(umask 022 && TZ=UTC LC_ALL=C build "$folder/b" "$(nproc)")
sleep 2 # files of zip and tar have times in seconds
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 build "$second" 1)
sums "$folder/b" >"$folder/first"
sums "$second" >"$folder/second"
if ! diff "$folder/first" "$folder/second"; then
  echo "reproducible.sh: the files above differ"
  exit 1
fi
echo "reproducible.sh: $(wc -l <"$folder/first") files are the same, of $(git rev-parse --short HEAD)"
