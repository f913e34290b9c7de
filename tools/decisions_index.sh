#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints docs/decisions/README.md: what decision records are, and a table of them.
#
#   tools/decisions_index.sh >docs/decisions/README.md
#
# Number, title, date and status are those at the head of each record; what a head lacks is left
# empty, and tests/lint/decisions.sh names it.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/..}"

cat <<'END'
# Decisions

Each record says one decision that the code alone does not explain: what was decided, why, and what
else was considered. A new record takes the next number and a title in standard terms, begins with
the same head as the others (`Status: accepted. Date: YYYY-MM-DD.`, then `Decision:` in one to three
lines), and says what was tried and not kept, and what was measured, on which machine and when.

END
echo '| number | title | date | status |'
echo '|---|---|---|---|'
for record in docs/decisions/[0-9][0-9][0-9][0-9]-*.md; do
  awk -v file="${record##*/}" '
    NR == 1 {
      number = title = $0
      gsub(/^# |\..*/, "", number)
      sub(/^# [0-9]+\. /, "", title)
    }
    NR <= 5 && /^Status: / {
      status = date = $0
      sub(/^Status: /, "", status)
      sub(/\. Date: .*/, "", status)
      if (!sub(/.*\. Date: /, "", date)) date = ""
      sub(/\.$/, "", date)
    }
    END { printf "| %s | [%s](%s) | %s | %s |\n", number, title, file, date, status }
  ' "$record"
done
