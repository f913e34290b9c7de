# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What checks share that run for hours: they work in pieces, each with another seed, and every
# piece adds a line to a table when it ends. A run that was interrupted goes on where it was, counts
# nothing twice, and sums are of one commit. pieces_open sets $pieces, the table; its first line has
# the names of the columns. Times are in seconds.

# Prints what the sums are of: the commit; a tree with changes is another one with each of them.
pieces_commit() { # TREE
  local commit changes
  commit=$(git -C "$1" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  changes=$(git -C "$1" status --porcelain -- src include cl tools tests cmake 2>/dev/null |
    grep -v '^??' || true)
  [ -z "$changes" ] || commit=$commit-$(git -C "$1" diff HEAD | cksum | cut -d' ' -f1)
  echo "$commit"
}

pieces_open() { # TREE FOLDER COLUMN...
  local IFS=$'\t'
  pieces=$2/$(pieces_commit "$1").tsv
  mkdir -p "$2"
  [ -s "$pieces" ] || echo "${*:3}" >"$pieces"
}

pieces_add() { # FIELD...
  local IFS=$'\t'
  echo "$*" >>"$pieces"
}

# The number of pieces, and the sum of a column, counted from 1; with KEY, of the lines whose first
# column that is.
pieces_count() { echo $(($(wc -l <"$pieces") - 1)); }
pieces_sum() { # COLUMN [KEY]
  awk -F'\t' -v c="$1" -v key="${2-}" 'NR > 1 && (key == "" || $1 == key) { s += $c }
    END { print s + 0 }' "$pieces"
}

# The seed of the first piece where the table has one, else $1, else of the clock.
pieces_seed() { # COLUMN [SEED]
  local seed
  seed=$(awk -F'\t' -v c="$1" 'NR == 2 { print $c }' "$pieces")
  echo "${seed:-${2:-$((EPOCHSECONDS % 1000000))}}"
}

# Runs a command, whose output goes to a file, and returns its status. Sets $pieces_s to the time it
# took and $pieces_cpu_s to that of the processors.
pieces_run() { # LOG COMMAND...
  local log=$1 begin=$EPOCHSECONDS status TIMEFORMAT=%U+%S times
  shift
  times=$({ time "$@" >"$log" 2>&1; } 2>&1) && status=0 || status=$?
  # read by the caller
  # shellcheck disable=SC2034
  pieces_s=$((EPOCHSECONDS - begin)) pieces_cpu_s=$(awk -F+ '{ print $1 + $2 }' <<<"$times")
  return "$status"
}

pieces_processor() { sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo 2>/dev/null; }
