#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   tools/kernel_variants.sh FOLDER [cl/FAMILY/FILE.cl...]
#
# Writes the programs of kernel files into a folder, FOLDER/<stem>@<number>.cl: each line
#   // @variant P_A=1 P_B=4
# at a file's head is a legal row of parameters, given as the prelude that the library would
# generate; lines of parameters alone after it continue it. Prints
# "<program>\t<kernel file>\t<row>\t<words>" for each; words are nvidia, amd, intel or targets of
# tools/portability.sh where a line
#   // @only gfx906 gfx90a
# precedes the row, for what their compilers alone can compile, else "-". Includes are relative to
# cl/. A file without a row fails.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/..}"

[ $# -ge 1 ] || {
  echo "usage: tools/kernel_variants.sh FOLDER [cl/FAMILY/FILE.cl...]" >&2
  exit 2
}
folder=$1
shift
[ $# -gt 0 ] || set -- cl/*/*.cl
rows() { # FILE: prints "variant <row>" and "only <words>"
  awk '
    function flush() { if (row != "") print row; row = "" }
    row ~ /^variant/ && /^\/\/ +P_[A-Z0-9_]+=[^ ]+( P_[A-Z0-9_]+=[^ ]+)*$/ { sub(/^\/\/ +/, " "); row = row $0; next }
    { flush() }
    /^\/\/[[:space:]]*@(variant|only)/ { sub(/^\/\/[[:space:]]*@/, ""); row = $0 }
    END { flush() }' "$1"
}
status=0
for file in "$@"; do
  stem=${file##*/}
  stem=${stem%.cl}
  n=0
  only=-
  while read -r mark row; do
    if [ "$mark" = only ]; then
      only=$row
      continue
    fi
    n=$((n + 1))
    {
      for pair in $row; do
        echo "#define ${pair%%=*} ${pair#*=}"
      done
      echo "#line 1 \"$file\""
      cat "$file"
    } >"$folder/$stem@$n.cl"
    printf '%s\t%s\t%s\t%s\n' "$stem@$n" "$file" "$row" "$only"
    only=-
  done < <(rows "$file")
  if [ "$n" -eq 0 ]; then
    echo "$file: no '// @variant P_...=...' line" >&2
    status=1
  fi
done
exit $status
