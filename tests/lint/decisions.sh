#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Decision records can be found: each begins with its status, date and decision, is in the index of
# docs/decisions, and is named by the code or a document that follows it.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

index=docs/decisions/README.md
status=0
complain() {
  echo "$1"
  status=1
}

# Prints the numbers of records that the tree names. A record does not count for itself, nor does
# the index.
named() {
  grep -rHoIE '[Dd]ecision [0-9]+|\b[0-9]{4}-[a-z0-9-]+\.md|decisions/[0-9]{4}' \
    src onnxruntime cl tools tests docs include cmake README.md CHANGELOG.md |
    awk -F : -v index_file="$index" '
      $1 == index_file { next }
      {
        match($2, /[0-9]+/)
        number = substr($2, RSTART, RLENGTH) + 0
        own = $1 ~ /^docs\/decisions\// ? substr($1, length("docs/decisions/") + 1, 4) + 0 : 0
        if (number != own) print number
      }' | sort -un
}

names=$(named)
for record in docs/decisions/[0-9][0-9][0-9][0-9]-*.md; do
  file=${record##*/}
  number=$((10#${file%%-*}))
  head=$(head -n 5 "$record")
  grep -qE "^# $number\. " <<<"${head%%$'\n'*}" ||
    complain "$record: the first line is '# $number. TITLE', with the number of the file's name"
  grep -qE '^Status: (accepted|superseded)' <<<"$head" ||
    complain "$record: the third line begins with 'Status: accepted' or 'Status: superseded by [N](FILE)'"
  grep -qE '^Status: .*\. Date: [0-9]{4}-[0-9]{2}-[0-9]{2}\.$' <<<"$head" ||
    complain "$record: the status line ends with 'Date: YYYY-MM-DD.'"
  grep -qE '^Decision: ' <<<"$head" ||
    complain "$record: no 'Decision:' in the fifth line; one to three lines say what was decided"
  grep -qxF "$number" <<<"$names" ||
    complain "$record: nothing names it; a comment of the code that follows it has 'decision $number' on one line"
done

if ! difference=$(diff -u "$index" <(tools/decisions_index.sh)); then
  echo "$difference"
  complain "$index is not of these records: tools/decisions_index.sh >$index"
fi
exit $status
