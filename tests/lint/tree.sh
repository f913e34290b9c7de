#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The shape of the tree: folders that can be taken in at a glance, files about one thing, lines of
# at most 100 columns in code and comments, those of Python too, and stems that lead to one file. A limit that is in the
# way is a sign that something needs a file of its own. See decision 40.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

MAX_FILES=30
MAX_LINES=600
MAX_KERNEL_LINES=400
MAX_COLUMNS=100

status=0
sources() { # TREE...: C and C++ files, kernels
  find "$@" -type f \( -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.cl' \
    -o -name '*.clh' \) | sort
}
scripts() { # Python, but not in build folders
  find . -type f -name '*.py' -not -path './build*' -not -path './.*' | sort
}
complain() {
  echo "$1"
  status=1
}

while read -r n folder; do
  [ "$n" -le "$MAX_FILES" ] ||
    complain "$folder: $n source files; more than $MAX_FILES want subfolders named for what sets them apart"
done < <(sources src onnxruntime cl include tools tests examples | sed 's#/[^/]*$##' | sort | uniq -c)

while read -r file; do
  lines=$(wc -l <"$file")
  limit=$MAX_LINES
  case $file in cl/*) limit=$MAX_KERNEL_LINES ;; esac
  [ "$lines" -gt "$limit" ] || continue
  complain "$file: $lines lines; more than $limit want a second file, named for what moves there"
done < <(sources src onnxruntime cl include tools tests examples)

while IFS= read -r line; do
  complain "$line has more than $MAX_COLUMNS columns; a long comment goes on the lines above its code"
done < <({ sources src onnxruntime cl include tools tests examples; scripts; } |
  xargs awk -v max="$MAX_COLUMNS" 'length > max { print FILENAME ":" FNR }')

unique() { # TREE PATTERN
  local name
  while read -r name; do
    complain "several files are called $name; each needs a name that says what sets it apart:"
    find "$1" -name "$name"
  done < <(find "$1" -name "$2" -printf '%f\n' | sort | uniq -d)
}
for tree in src onnxruntime tests; do
  unique "$tree" '*.c'
  unique "$tree" '*.h'
done
unique cl '*.cl'
unique cl '*.clh'
exit $status
