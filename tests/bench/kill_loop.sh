#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kill_loop.sh [KILLS [FOLDER [JOB...]]]: starts cltool, kills it (SIGKILL) at a random moment, KILLS times
# (100), and checks what is left: an output is whole or not there, a file that was to be replaced is
# the old or the new one, no process of it lives on, and the next start works, gives the right
# answer and leaves no temporary file. The jobs: run with a cache, predict to a new file and over an
# old one, cache pack over an old one, train with a checkpoint at each step, with which the next
# start goes on to the same file; half of the starts but those of the last two fill an empty cache.
#
# FOLDER/COMMIT.tsv (a temporary folder by default) gets a line for each kill, and has the seed
# (CLG_TEST_SEED, else of the clock): the same command goes on where it was stopped. CLTOOL names
# another than build/cltool. Exit code 1: something was wrong; the folder then stays.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/pieces.bash
source "$root/tests/support/pieces.bash"
# shellcheck source=tests/support/killing.bash
source "$root/tests/support/killing.bash"
cltool=${CLTOOL:-$root/build/cltool}
kills=${1:-100}
[[ $kills =~ ^[1-9][0-9]*$ ]] || { echo "usage: kill_loop.sh [KILLS [FOLDER [JOB...]]]" >&2; exit 2; }
folder=${2:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder" || exit 2
pieces_open "$root" "$PWD" job seed index cold delay_us killed result
seed=$(pieces_seed 2 "${CLG_TEST_SEED-}")
echo "CLG_TEST_SEED=$seed, $pieces"
model=$root/examples/digits/digits.onnx
rows=$root/examples/digits/heldout.npy
export CLG_CACHE_DIR=$PWD/cache POCL_CACHE_DIR=$PWD/pocl CLG_DEVICE=${CLG_DEVICE:-pocl}
labels=$root/examples/digits/heldout_labels.npy
jobs=(run predict predict_over pack train)
[ $# -lt 3 ] || jobs=("${@:3}")

# The command of a job.
set_command() { # JOB
  case $1 in
    run) command=(run "$model" --fill random:1 -o out --force -q) ;;
    predict | predict_over) command=(predict "$model" -i "$rows" -o y.npy --force --batch 7 -q) ;;
    pack) command=(cache pack programs.pack --force -q) ;;
    train)
      command=(train "$model" -i "$rows" --target "$labels" --loss cross-entropy --batch 16
        --epochs 2 --optimizer adam --checkpoint steps.npz --every 1 --resume -o trained.onnx
        --force -q)
      ;;
    *) echo "there is no job '$1'" >&2; exit 2 ;;
  esac
}

empty_cache() { rm -rf cache && mkdir cache; } # PoCL's stays, to save time

# What is there before a job: outputs are not, or old.
prepare() { # JOB IS_COLD
  rm -rf out y.npy programs.pack steps.npz trained.onnx
  [ "$2" -eq 0 ] || empty_cache
  case $1 in
    predict_over) echo old >y.npy ;;
    pack)
      "$cltool" cache warm "$model" -q >/dev/null 2>&1
      "$cltool" cache pack programs.pack -q >/dev/null 2>&1
      cp programs.pack old.pack
      ;;
  esac
}

# Sets $complaint unless what is left of a job, which ended well (0) or was killed (1), is right.
check() { # JOB KILLED
  local file new=expected/y.npy
  complaint=
  case $1 in
    run) file=$(echo out/*.npy) new=expected/$name ;;
    predict | predict_over) file=y.npy ;;
    train) file=trained.onnx new=expected/trained.onnx ;;
    pack)
      CLG_CACHE_DIR=$PWD/unpacked "$cltool" cache unpack programs.pack -q >/dev/null 2>err ||
        complaint="the pack is lost or damaged: $(tail -n 1 err)"
      rm -rf unpacked
      return
      ;;
  esac
  if [ ! -e "$file" ]; then
    [ "$2" -eq 1 ] && [ "$1" != predict_over ] || complaint="$file is lost"
  elif ! cmp -s "$file" "$new"; then
    [ "$2" -eq 1 ] && [ "$1" = predict_over ] && [ "$(cat "$file")" = old ] ||
      complaint="$file is neither old nor new"
  fi
}

# Sets $took to the microseconds of a whole job.
measure() { # JOB IS_COLD
  local begin
  prepare "$1" "$2"
  set_command "$1"
  begin=${EPOCHREALTIME/./}
  "$cltool" "${command[@]}" >/dev/null 2>err || { echo "$1 fails: $(tail -n 1 err)"; exit 2; }
  took=$((${EPOCHREALTIME/./} - begin))
}

# Starts a job and kills it after a time. Sets $was_killed.
start_and_kill() { # MICROSECONDS
  local pid left
  killed_after "$1" "$cltool" "${command[@]}" >/dev/null 2>err &
  pid=$!
  wait "$pid" 2>/dev/null
  [ $? -ne 137 ] || was_killed=1
  if left=$(lives_on "$pid"); then complaint="processes live on: $left"; fi
}

# One kill and the start after it.
one() { # INDEX
  local job is_cold delay key bits result=right was_killed=0
  bits=$(cksum <<<"$seed $1" | cut -d ' ' -f 1)
  job=${jobs[bits % ${#jobs[@]}]}
  is_cold=$((bits / 4 % 2))
  [[ $job != @(pack|train) ]] || is_cold=0
  key=$job$is_cold
  delay=$((bits / 8 % time_of[$key]))
  prepare "$job" $is_cold
  set_command "$job"
  complaint=
  start_and_kill "$delay"
  # The next ones are killed within the time that a whole job seems to take.
  if [ $was_killed -eq 0 ]; then
    time_of[$key]=$((delay > 5000 ? delay : 5000))
  elif [ $((delay * 5 / 4)) -gt "${time_of[$key]}" ]; then
    time_of[$key]=$((delay * 5 / 4))
  fi
  [ -n "$complaint" ] || check "$job" $was_killed
  if [ -z "$complaint" ]; then
    if "$cltool" "${command[@]}" >/dev/null 2>err; then
      check "$job" 0
    else
      complaint="the next start fails: $(tail -n 1 err)"
    fi
  fi
  [ -n "$complaint" ] || complaint=$(find . -name '*.tmp.*' -printf '%p is left' -quit)
  [ -z "$complaint" ] || result="WRONG: $complaint"
  pieces_add "$job" "$seed" "$1" $is_cold "$delay" $was_killed "$result"
  [ -z "$complaint" ] || find . -name '*.tmp.*' -delete
}

rm -rf expected
mkdir -p pocl
empty_cache
"$cltool" run "$model" --fill random:1 -o expected -q >/dev/null 2>&1
name=$(basename expected/*.npy)
"$cltool" predict "$model" -i "$rows" -o expected/y.npy --batch 7 -q >/dev/null 2>&1 || exit 2
prepare train 0
set_command train
"$cltool" "${command[@]}" >/dev/null 2>&1 && mv trained.onnx expected || exit 2
declare -A time_of
for job in "${jobs[@]}"; do
  for is_cold in 1 0; do
    [ "$job$is_cold" != pack1 ] || continue
    measure "$job" $is_cold
    measure "$job" $is_cold # with what is now in PoCL's cache
    time_of[$job$is_cold]=$took
  done
done
for ((i = $(pieces_count); i < kills; i++)); do one "$i"; done

awk -F '\t' 'NR > 1 { n[$1]++; killed[$1] += $6; wrong[$1] += $7 != "right" }
  END {
    for (job in n)
      printf "%s: %d starts, %d killed, %d wrong\n", job, n[job], killed[job], wrong[job]
  }' "$pieces" | sort
if grep WRONG "$pieces"; then exit 1; fi
cd / && { [ $# -ge 2 ] || rm -rf "$folder"; }
