#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cold.sh [ROUNDS] MODEL...: what a first start costs: `cltool run` of each model with nothing in the store nor in PoCL's
# cache, then once more with what that left. Wall time and processor time (user and system) of the whole processes, medians,
# and the programs that were built, the device's probes aside. Processor time is disturbed less where the machine has other work.
# BEFORE names another cltool: it runs in turn with build/cltool, and medians of the pairs' ratios are printed too. CLTOOL names
# another than build/cltool.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cltool=${CLTOOL:-$root/build/cltool}
rounds=3
[[ ${1:-} =~ ^[0-9]+$ ]] && rounds=$1 && shift
[[ $# -gt 0 ]] || { echo "usage: cold.sh [ROUNDS] MODEL..." >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() { sort -g | awk '{ x[NR] = $1 } END { printf "%.2f", NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }

# Wall and processor seconds of one start of $1 with the model $2.
start() {
  local TIMEFORMAT='%R %U %S'
  { time "$1" run "$2" --fill random:1 -q >"$work/out" 2>&1; } 2>&1 | awk '{ print $1, $2 + $3 }'
}

# A cold and a warm start: four figures, and how many programs there were.
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
    printf '%s, %s: cold %s s, processor %s s; warm %s s, processor %s s; %s programs\n' "$(basename "$model")" "$which" \
      "$(column "$work/$which" 1 | median)" "$(column "$work/$which" 2 | median)" "$(column "$work/$which" 3 | median)" \
      "$(column "$work/$which" 4 | median)" "$(column "$work/$which" 5 | sort -n | tail -n 1)"
  done
  [[ -z ${BEFORE:-} ]] || paste -d ' ' "$work/after" "$work/before" | awk '{ print $1 / $6 > "'"$work"'/wall"; print $2 / $7 > "'"$work"'/cpu" }'
  [[ -z ${BEFORE:-} ]] || echo "  after / before, medians: wall $(median <"$work/wall"), processor $(median <"$work/cpu")"
done
