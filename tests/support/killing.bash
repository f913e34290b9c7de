# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Starts commands that are killed (SIGKILL) after a time, for tests of what a killed process leaves.

# Runs a command in a new process group, whose id is that of this shell's last job, and kills
# it after so many microseconds, if it has not ended. Run with &; the status is 137 if it was killed.
killed_after() { # MICROSECONDS COMMAND...
  local after
  after=$(printf '%d.%06d' $(($1 / 1000000)) $((1 + $1 % 1000000)))
  shift
  exec setsid timeout --foreground -s KILL "$after" "$@"
}

# Waits until no process of a group is left, as compile helpers end when their parent has. Kills and
# prints those that live on; returns whether there were any.
lives_on() { # GROUP
  local left
  for _ in $(seq 100); do
    left=$(ps -o pid= -g "$1")
    [ -n "$left" ] || return 1
    sleep 0.1
  done
  kill -KILL -- "-$1"
  echo "$left"
}
