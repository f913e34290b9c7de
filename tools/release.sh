#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the files of a release of HEAD:
#
#   tools/release.sh [--draft] FOLDER    checks, and all files
#   tools/release.sh --source FOLDER     the archive of the source and its bill of materials alone
#
# Into FOLDER: clgraph-VERSION.tar.gz, made by git archive; clgraph-VERSION.spdx.json, the bill of
# materials; clgraph-VERSION.notes.md, the changelog's section; and SHA256SUMS of all files in FOLDER,
# so that archives and wheels that were put there before are among them. Checked before: the tree has
# no changes; CHANGELOG.md has a section of the version, with a date; debian/ has the version; no
# other commit has its tag; tools/abi.sh finds the interface compatible. --draft leaves out date and
# tag. The same commit gives the same bytes (tools/reproducible.sh). docs/packaging.md has the steps
# around it.
set -euo pipefail
usage() {
  echo "usage: tools/release.sh [--draft | --source] FOLDER" >&2
  exit 2
}
mode=release
case ${1:-} in
  --draft | --source) mode=${1#--} && shift ;;
  -*) usage ;;
esac
[ $# -eq 1 ] || usage
mkdir -p -- "$1"
folder=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
version=$(tools/version.sh)

fail() {
  echo "release.sh: $*" >&2
  exit 1
}
checks() {
  local section changed tagged work
  changed=$(git status --porcelain --untracked-files=no)
  [ -z "$changed" ] || fail "the tree has changes, and a release is of a commit: $changed"
  section=$(grep -E '^## [0-9]' CHANGELOG.md | head -n 1)
  [[ $section == "## $version,"* ]] || fail "CHANGELOG.md begins with '$section', the version is $version"
  if [ "$mode" = release ]; then
    [[ $section =~ ^"## $version, "[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
      fail "CHANGELOG.md has '$section'; a release has a date: '## $version, 2026-12-31'"
    tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}" || true)
    [ -z "$tagged" ] || [ "$tagged" = "$(git rev-parse HEAD)" ] || fail "the tag v$version is on another commit"
    [[ $(head -n 1 debian/changelog) != *UNRELEASED* ]] || fail "debian/changelog says UNRELEASED"
  fi
  [[ $(head -n 1 debian/changelog) == "clgraph ($version-"* ]] || fail "debian/changelog has not the version $version"
  work=$(mktemp -d)
  tools/abi.sh "$work" || fail "tools/abi.sh says no"
  rm -rf "$work"
}
source_files() {
  (umask 022 && git -c core.autocrlf=false archive --format=tar --prefix="clgraph-$version/" HEAD) |
    gzip -9 -n >"$folder/clgraph-$version.tar.gz"
  python3 tools/sbom.py >"$folder/clgraph-$version.spdx.json"
}

# The section of the version.
notes() { awk '/^## / { n++ } n == 1 && !/^## /' CHANGELOG.md >"$folder/clgraph-$version.notes.md"; }

[ "$mode" = source ] || checks
source_files
[ "$mode" != source ] || exit 0
notes
rm -f "$folder/SHA256SUMS"
sums=$(cd "$folder" && find . -maxdepth 1 -type f -printf '%f\0' | LC_ALL=C sort -z | xargs -0 sha256sum)
echo "$sums" >"$folder/SHA256SUMS"
cat "$folder/SHA256SUMS"
