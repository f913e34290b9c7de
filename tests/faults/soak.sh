#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   tests/faults/soak.sh SECONDS [BUILD [FOLDER]]
#
# Runs faults.soak of a build (default build) for that long, two hours, say, in pieces of
# CLG_TEST_ROUNDS rounds (20000), each a process with one context, with seeds from
# CLG_TEST_SEED on (default: the clock). FOLDER/COMMIT.tsv (BUILD/soak-results) gets a line for each
# piece: an interrupted run goes on where it was, and only pieces of the same commit are summed. The
# last piece may take longer. Exit status 1: a piece failed; its output is beside the table.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/support/pieces.bash
source "$root/tests/support/pieces.bash"
[[ ${1-} =~ ^[0-9]+$ ]] || {
  sed -n '4,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
build=$(realpath -- "${2:-$root/build}")
results=${3:-$build/soak-results}
export CLG_TEST_ROUNDS=${CLG_TEST_ROUNDS:-20000} CLG_CACHE_DIR=${CLG_CACHE_DIR:-$build/test-cache}

columns=(result seed seconds cpu_s rounds jobs sessions devices failed_allocations allocations
  failed_calls calls cancelled_by_token token cancelled_by_thread thread over_limits limits
  bytes_a_round processor)
pieces_open "$root" "$results" "${columns[@]}"
first=$(pieces_seed 2 "${CLG_TEST_SEED-}")
echo "CLG_TEST_SEED=$first, $pieces"

# The numbers of "soak: seed 7, 20000 rounds, ...", in the order of the columns, but for the seed.
numbers() { sed -n 's/^soak: seed [0-9]*, //p' "$1" | grep -oE '[0-9]+' || true; }

while [ "$(pieces_sum 3)" -lt "$1" ]; do
  seed=$((first + $(pieces_count)))
  log=$results/$(basename "$pieces" .tsv)-$seed.log
  result=right
  CLG_TEST_SEED=$seed pieces_run "$log" "$build/tests/faults/test_soak" || result=WRONG
  mapfile -t counts < <(numbers "$log")
  [ ${#counts[@]} -eq 14 ] || counts=("$CLG_TEST_ROUNDS" 0 0 0 0 0 0 0 0 0 0 0 0 0)
  growth=$(sed -n 's/^resident memory grows by \(\S*\) bytes a round.*/\1/p' "$log" | head -n 1)
  pieces_add $result "$seed" "$pieces_s" "$pieces_cpu_s" "${counts[@]}" "${growth:-?}" \
    "$(pieces_processor)"
  [ $result = right ] || break
done

echo "commit $(basename "$pieces" .tsv), $(pieces_count) pieces, of them wrong: $(grep -c ^WRONG "$pieces" || true)"
for i in "${!columns[@]}"; do
  [ "$i" -lt 2 ] || [ "$i" -gt 17 ] || printf '%-20s %s\n' "${columns[i]}" "$(pieces_sum $((i + 1)))"
done
echo "bytes a round, of each piece: $(awk -F'\t' 'NR > 1 { printf " %s", $19 }' "$pieces")"
if grep -q ^WRONG "$pieces"; then
  echo "the output of what was wrong: $results/$(basename "$pieces" .tsv)-*.log" >&2
  exit 1
fi
