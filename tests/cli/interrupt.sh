#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ctrl-C: exit 130, a message, and no half-written file.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
"$CLTOOL" cache warm digits.onnx -q >/dev/null

# Starts cltool, waits until it says which device it uses, interrupts it.
interrupted() { # SIGNAL ARGS...
  local signal=$1 pid
  shift
  printf '$ cltool %s, %s\n' "$*" "$signal"
  "$CLTOOL" "$@" >out 2>err &
  pid=$!
  for _ in $(seq 1200); do
    grep -q device err && break
    sleep 0.05
  done
  sleep 0.3
  kill "-$signal" "$pid"
  wait "$pid"
  local code=$?
  grep -v '^cltool: \(device\|dimension\|input\)' err | sed 's/^/! /'
  cat out
  printf '[exit %d]\n\n' "$code"
  rm -f out err
}
interrupted INT bench digits.onnx --runs 100000000
interrupted INT bench digits.onnx --runs 100000000 --concurrency 2
interrupted INT bench digits.onnx --runs 100000000 --json
interrupted TERM profile digits.onnx --runs 100000000 --trace trace.json
ls
finish
