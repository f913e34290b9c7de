#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   tools/renames/same_kernels.sh COMMIT [MAP...]
#
# Compares the tokens of every kernel variant (tools/kernel_variants.sh) of this tree with those of
# a commit, after the names of the maps have been replaced in the older one. Prints what differs;
# fails when anything does. Names are those of rows `name`, and those of rows `code` in the files of
# their globs. Needs clang.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
[ $# -ge 1 ] || {
  echo "usage: tools/renames/same_kernels.sh COMMIT [MAP...]" >&2
  exit 2
}
commit=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes FOLDER/<program>, a token a line, for the tree in the working directory.
tokens_of() { # FOLDER
  local program
  mkdir -p "$1/source"
  tools/kernel_variants.sh "$1/source" >"$1/variants"
  while IFS=$'\t' read -r program _; do
    clang -x cl -cl-std=CL1.2 -E -P -Icl "$1/source/$program.cl" 2>/dev/null |
      grep -oE '[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9a-zA-Z.]*|[^[:space:]]' >"$1/$program" || true
  done <"$1/variants"
  rm -r "$1/source"
}

git archive "$commit" | tar -x -C "$(mkdir -p "$work/old" && echo "$work/old")"
for map in "$@"; do
  awk '$1 == "name" { print "s/\\b" $2 "\\b/" $3 "/g" }' "$map"
done >"$work/names.sed"
for map in "$@"; do
  awk '$1 == "file" && $2 ~ /^cl\// { print $2, $3 }' "$map"
done | while read -r old new; do
  if [ -e "$work/old/$old" ]; then
    mkdir -p "$work/old/${new%/*}"
    mv "$work/old/$old" "$work/old/$new"
  fi
done
set -f # globs are for find
for map in "$@"; do
  awk '$1 == "code"' "$map"
done | while read -r _ old new globs; do
  for glob in ${globs:-cl/*}; do
    find "$work/old/cl" -type f -path "$work/old/$glob" -exec sed -E -i "s/\\b$old\\b/$new/g" {} +
  done
done
set +f
(cd "$work/old" && find cl -type f -exec sed -E -i -f "$work/names.sed" {} + && tokens_of "$work/before")
tokens_of "$work/after"
cut -f 1,3,4 "$work/before/variants" | sort >"$work/before.rows"
cut -f 1,3,4 "$work/after/variants" | sort >"$work/after.rows"
status=0
diff "$work/before.rows" "$work/after.rows" || status=1
n=0
while IFS=$'\t' read -r program _; do
  n=$((n + 1))
  if [ ! -s "$work/after/$program" ] || ! cmp -s "$work/before/$program" "$work/after/$program"; then
    echo "$program: other tokens"
    status=1
  fi
done <"$work/after.rows"
echo "$n kernel variants compared with $commit"
exit $status
