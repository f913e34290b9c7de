#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cold.sh [ROUNDS] MODEL...: what a first start costs: `cltool run` of each model with nothing in
# the store nor in PoCL's cache, then once more with what that left. Wall time until the result is
# printed and of the whole process, which still puts programs into the store, and processor time
# (user and system), medians; and the programs that were built, the device's probes aside. Processor
# time is disturbed less where the machine has other work.
# BEFORE names another cltool: it runs in turn with build/cltool, and medians of the pairs' ratios
# are printed too. CLTOOL names another than build/cltool.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cltool=${CLTOOL:-$root/build/cltool}
rounds=3
[[ ${1:-} =~ ^[0-9]+$ ]] && rounds=$1 && shift
[[ $# -gt 0 ]] || { echo "usage: cold.sh [ROUNDS] MODEL..." >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() { sort -g | awk '{ x[NR] = $1 } END { printf "%.2f", NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }

# One start of $1 with the model $2: seconds of wall time to the result and to the end, and of
# processor time.
start() {
  local TIMEFORMAT='%R %U %S' begin=$EPOCHREALTIME
  {
    time "$1" run "$2" --fill random:1 -q 2>"$work/err" | {
      read -r _ && echo "$EPOCHREALTIME" >"$work/result"
      cat >/dev/null
    }
  } 2>&1 | awk -v begin="$begin" -v result="$work/result" '{ getline at <result; print at - begin, $1, $2 + $3 }'
}

# A cold and a warm start: six figures, and how many programs there were.
starts() {
  export CLG_CACHE_DIR=$work/store POCL_CACHE_DIR=$work/pocl
  rm -rf "$work/store" "$work/pocl"
  mkdir "$work/store" "$work/pocl"
  local cold warm
  cold=$(start "$1" "$2")
  warm=$(start "$1" "$2")
  echo "$cold $warm $("$1" cache list | grep -c ': program ')"
}
column() { awk -v n="$2" '{ print $n }' "$1"; }

for model in "$@"; do
  rm -f "$work/after" "$work/before"
  for ((round = 0; round < rounds; round++)); do
    [[ -z ${BEFORE:-} ]] || starts "$BEFORE" "$model" >>"$work/before"
    starts "$cltool" "$model" >>"$work/after"
  done
  for which in before after; do
    [[ -f $work/$which ]] || continue
    printf '%s, %s: cold %s s to the result, %s s to the end, processor %s s; warm %s s, %s s, %s s; %s programs\n' \
      "$(basename "$model")" "$which" \
      "$(column "$work/$which" 1 | median)" "$(column "$work/$which" 2 | median)" "$(column "$work/$which" 3 | median)" \
      "$(column "$work/$which" 4 | median)" "$(column "$work/$which" 5 | median)" "$(column "$work/$which" 6 | median)" \
      "$(column "$work/$which" 7 | sort -n | tail -n 1)"
  done
  [[ -z ${BEFORE:-} ]] || paste -d ' ' "$work/after" "$work/before" | awk '{ print $2 / $9 > "'"$work"'/wall"; print $3 / $10 > "'"$work"'/cpu" }'
  [[ -z ${BEFORE:-} ]] || echo "  after / before, medians: wall $(median <"$work/wall"), processor $(median <"$work/cpu")"
done
