#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Links between documents lead somewhere: the file exists, and has the heading that a #fragment
# names.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

# Prints the fragments of a document's headings, as GitHub forms them: lower case, punctuation
# dropped, - for a space.
fragments() {
  # shellcheck disable=SC2016 # backquotes are fences
  sed -nE '/^```/,/^```/d; s/^#+ +//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9_ -]//g; s/ /-/g'
}

status=0
n=0
while IFS=: read -r file link; do
  link=${link#*](}
  link=${link%)}
  target=${link%%#*}
  path=$file
  [ -z "$target" ] || path=$(dirname "$file")/$target
  n=$((n + 1))
  if [ ! -e "$path" ]; then
    echo "$file: there is no $link"
    status=1
  elif [[ $link == *#* ]] && ! fragments "$path" | grep -qxF -- "${link#*#}"; then
    echo "$file: $path has no heading for #${link#*#}"
    status=1
  fi
done < <(find . \( -path './build*' -o -path ./.git \) -prune -o -name '*.md' -print | sort |
  xargs grep -oE '\]\([^) ]+\)' /dev/null | grep -vE '\]\((https?|mailto):')
[ "$n" -gt 0 ] || { echo "no links were found"; exit 1; }
exit $status
