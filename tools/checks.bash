# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by scripts that run a list of checks: `check NAME COMMAND...` runs one and prints how it
# went; `checks_finish` prints `N passed, N failed, N skipped` and returns 1 if one failed. A command
# that exits with 77 is skipped, with its last line as the reason.

passed=0
failed=0
skipped=0

check() { # NAME COMMAND...: returns the command's status
  local name=$1 output code=0
  shift
  output=$(mktemp) # no pipe, which servers that the command starts would keep open
  "$@" >"$output" 2>&1 </dev/null || code=$?
  case $code in
    0) passed=$((passed + 1)) && echo "pass  $name" ;;
    77) skipped=$((skipped + 1)) && echo "skip  $name: $(tail -n 1 "$output")" ;;
    *)
      failed=$((failed + 1))
      echo "FAIL  $name"
      # the first errors of a compiler, and the end of what a test says
      awk 'NR <= 40 { print; next } { last[NR % 60] = $0 }
        END { if (NR > 100) print "[...]"; for (i = NR < 100 ? 41 : NR - 59; i <= NR; i++) print last[i % 60] }' \
        "$output"
      ;;
  esac
  rm -f "$output"
  return "$code"
}

checks_finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}
