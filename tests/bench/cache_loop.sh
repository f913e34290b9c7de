#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cache_loop.sh [ROUNDS [FOLDER]]: starts eight cltool processes at the same time on an empty cache,
# ROUNDS times (100), in every other round with some of them killed (SIGKILL) at random moments. What is
# not killed must end well with the right bits; what is left of temporary files must be what
# docs/errors.md says: nothing where nobody was killed, else nothing after `cltool cache prune`; and
# the next start must compile nothing.
#
# FOLDER/COMMIT.tsv (a temporary folder by default) gets a line for each round, and has the seed
# (CLG_TEST_SEED, else of the clock): the same command goes on where it was stopped. CLTOOL names
# another than build/cltool. Exit code 1: something was wrong; the folder then stays.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/pieces.bash
source "$root/tests/support/pieces.bash"
# shellcheck source=tests/support/killing.bash
source "$root/tests/support/killing.bash"
cltool=${CLTOOL:-$root/build/cltool}
rounds=${1:-100}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "usage: cache_loop.sh [ROUNDS [FOLDER]]" >&2; exit 2; }
folder=${2:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder" || exit 2
pieces_open "$root" "$PWD" seed index milliseconds killed survived left compiled result processor
seed=$(pieces_seed 1 "${CLG_TEST_SEED-}")
echo "CLG_TEST_SEED=$seed, $pieces"
model=$root/examples/digits/digits.onnx
rows=$root/examples/digits/heldout.npy
export CLG_CACHE_DIR=$PWD/cache POCL_CACHE_DIR=$PWD/pocl CLG_DEVICE=${CLG_DEVICE:-pocl}
processes=8
never=3600000000 # microseconds

empty_cache() { rm -rf cache && mkdir cache; } # PoCL's stays, to save time

# The command of a process, and the file that it writes: one half runs, the other predicts.
set_command() { # PROCESS
  if [ $(($1 % 2)) -eq 0 ]; then
    command=(run "$model" --fill random:1 -o "out$1" --force -q)
    output=out$1/$name
    expected=expected/$name
  else
    command=(predict "$model" -i "$rows" -o "y$1.npy" --force --batch 7 -q)
    output=y$1.npy
    expected=expected/y.npy
  fi
}

# A random number of 32 bits for a round and a purpose.
bits() { cksum <<<"$seed $1 $2" | cut -d ' ' -f 1; }

# Starts the processes of a round and waits for them. Sets $killed, $survived and $complaint.
start_all() { # INDEX
  local p pid left status after pids=()
  for ((p = 0; p < processes; p++)); do
    set_command $p
    rm -rf "out$p" "y$p.npy"
    after=$never
    if [ $(($1 % 2)) -eq 1 ] && [ $(($(bits "$1" "$p is killed") % 2)) -eq 0 ]; then
      after=$(($(bits "$1" "$p dies") % (longest * 3 / 4)))
    fi
    killed_after "$after" "$cltool" "${command[@]}" >/dev/null 2>"err$p" &
    pids+=($!)
  done
  for ((p = 0; p < processes; p++)); do
    pid=${pids[p]}
    status=0
    wait "$pid" 2>/dev/null || status=$?
    set_command $p
    if [ $status -eq 137 ] && [ $(($1 % 2)) -eq 1 ]; then
      killed=$((killed + 1))
    elif [ $status -ne 0 ]; then
      complaint="process $p ends with $status: $(tail -n 1 "err$p")"
    elif ! cmp -s "$output" "$expected"; then
      complaint="process $p writes other results"
    else
      survived=$((survived + 1))
    fi
  done
  for pid in "${pids[@]}"; do
    if left=$(lives_on "$pid"); then complaint="processes live on: $left"; fi
  done
}

count_temporary() { find cache -name '*.tmp.*' | wc -l; }

# Looks at what a round leaves. Sets $n_left, $compiled and $complaint.
check_cache() {
  n_left=$(count_temporary)
  [ "$killed" -gt 0 ] || [ "$n_left" -eq 0 ] || complaint="$n_left temporary files are left"
  "$cltool" cache prune -q >/dev/null 2>err || complaint="cache prune: $(tail -n 1 err)"
  [ "$(count_temporary)" -eq 0 ] || complaint="temporary files are left after a prune"
  compiled=$("$cltool" cache warm "$model" -q --json 2>err | sed -n 's/.*"compiled": \([0-9]*\).*/\1/p')
  [ -n "$compiled" ] || complaint="cache warm: $(tail -n 1 err)"
  [ "$survived" -eq 0 ] || [ "${compiled:-0}" -eq 0 ] ||
    complaint="the next start compiles $compiled programs again"
  set_command 0
  "$cltool" "${command[@]}" >/dev/null 2>err && cmp -s "$output" "$expected" ||
    complaint="the next start: $(tail -n 1 err)"
}

one() { # INDEX
  local begin=${EPOCHREALTIME/./} took result=right killed=0 survived=0 n_left=0 compiled=
  complaint=
  empty_cache
  start_all "$1"
  took=$((${EPOCHREALTIME/./} - begin))
  [ "$killed" -gt 0 ] || longest=$took
  [ -n "$complaint" ] || check_cache
  [ -z "$complaint" ] || result="WRONG: $complaint"
  pieces_add "$seed" "$1" $((took / 1000)) $killed $survived "$n_left" "${compiled:-?}" \
    "$result" "$(pieces_processor)"
}

rm -rf expected
mkdir -p pocl
empty_cache
"$cltool" run "$model" --fill random:1 -o expected -q >/dev/null 2>&1
name=$(basename expected/*.npy)
begin=${EPOCHREALTIME/./}
"$cltool" predict "$model" -i "$rows" -o expected/y.npy --batch 7 -q >/dev/null 2>&1 || exit 2
longest=$((${EPOCHREALTIME/./} - begin)) # of a round, in microseconds
for ((i = $(pieces_count); i < rounds; i++)); do one "$i"; done

awk -F '\t' 'NR > 1 { n++; k += $4; s += $5; l += $6; l_rounds += $6 > 0; w += $8 != "right" }
  END {
    printf "%d rounds, %d processes killed, %d survived, %d temporary files left in %d rounds, ",
      n, k, s, l, l_rounds
    printf "%d wrong\n", w
  }' "$pieces"
if grep WRONG "$pieces"; then exit 1; fi
cd / && { [ $# -ge 2 ] || rm -rf "$folder"; }
