#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool report: one file without the user's data, and tools/hardware_table.py, which merges such
# files.
# ctest: timeout 900
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
report_keys() { json_keys | grep -v '^    [0-9]*:[0-9]*$'; }
table() { python3 "$CLG_SOURCE_DIR/tools/hardware_table.py" "$@" 2>&1; }
# Devices and figures of a table differ from machine to machine.
table_figures() { sed -E '6,$s/\| [^|]+/| X/g'; }

echo "== a report"
# The diagnosis shows this variable.
export LD_LIBRARY_PATH=/people/someone/secret${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
show report mlp --runs 2 --batch 1,2 -d auto -o report.json -q
report_keys <report.json
echo "== without paths and names"
private() { # WORD...: which of these the report has
  local word
  for word in "$@"; do
    if [ "${#word}" -gt 1 ] && grep -qwF -- "$word" report.json; then echo "has '$word'"; fi
  done
}
private "$WORK" "$HOME" "$(hostname)" "$(id -un)" secret someone '"id"' 'id:'
grep -oE "(^|[^A-Za-z0-9<])/[a-z]+/[^ ]*" report.json
grep -c 'LD_LIBRARY_PATH.*<path>' report.json

echo "== merged"
table report.json | table_figures
table report.json report.json | wc -l
echo "== no device"
show report mlp --runs 1 --batch 1 -d nothing-like-this -o none.json -q
grep -c '"diagnosis"' none.json
table none.json

echo "== damaged files"
head -c 1000 report.json >cut.json
sed 's/"runs": 2/"runs": 3/' report.json >edited.json
echo '{"format": "clgraph report"}' >other.json
table cut.json edited.json other.json report.json missing.json
echo "exit ${PIPESTATUS[0]}"

echo "== faults"
show report resnet51 -q
show report mlp -o report.json -q
show report mlp -o no-folder/x.json --runs 1 --batch 1 -q
finish
