#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails each operation on files in turn, and each start of a thread or process, while cltool loads a
# model, fills and uses a cache of compiled programs, packs and unpacks it, and writes results. It
# must not crash; what it writes is whole or not there; nothing is left beside it; a failure has a
# message; and the next run works.
# ctest: label slow timeout 900
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
library=system_faults.so
LD_LIBRARY_PATH=$(libraries)
export LD_LIBRARY_PATH
if grep -qE '^CLG_SANITIZE:[A-Z]+=(ON|thread)$' "$CLG_BUILD_DIR/CMakeCache.txt"; then
  echo "skipped: the sanitizer's library must be loaded first" >&3
  exit 77
fi

small_graph() { # z = relu(x + w), w in a file beside the model
  onnx_node Add add 'x w' s
  onnx_node Relu relu s y
  onnx_input x 1 N 4
  onnx_output y 1 N 4
  onnx_external w 4 weights.bin
  pb_text 2 small
}
f32 3f800000 40000000 40400000 40800000 >weights.bin
onnx_model small_graph >small.onnx
for _ in $(seq 8); do f32 3f800000 c0000000 40400000 c0800000; done | npy '<f4' '(8, 4)' >x.npy
export CLG_CACHE_DIR=$WORK/cache
rm -rf expected && mkdir expected
"$CLTOOL" run small.onnx -i x.npy -o expected/run -q >/dev/null
"$CLTOOL" predict small.onnx -i x.npy -o expected/y.npy --batch 4 -q >/dev/null
"$CLTOOL" inspect small.onnx --dot expected/small.dot -q >/dev/null
"$CLTOOL" cache pack expected/pack -q >/dev/null
cp -r cache expected/cache

# Fails operation 1, 2, ... of a command, until all of it succeeded: at least $at_least. A case sets
# the scene by `before`, and `check CODE` looks at what is there.
at_least=4
each_fault() { # NAME ARGS...
  local name=$1 n code
  shift
  for n in $(seq 1000); do
    before
    rm -f fired
    CLG_SYSTEM_FAULTS=$n CLG_SYSTEM_FAULTS_UNDER=$WORK CLG_SYSTEM_FAULTS_FIRED=/proc/self/cwd/fired \
      LD_PRELOAD=$library "$CLTOOL" "$@" >.test/out 2>.test/err
    code=$?
    [ -e fired ] || break
    [ $code -lt 100 ] || echo "$name, operation $n: exit $code"
    [ $code -eq 0 ] || grep -q '^cltool: error: .' .test/err || echo "$name, operation $n: no message"
    check "$code" || echo "$name, operation $n: exit $code, and $complaint"
    left=$(find . -name '*.tmp.*' | head -1)
    [ -z "$left" ] || echo "$name, operation $n: $left is left"
    find . -name '*.tmp.*' -delete
  done
  [ "$code" -eq 0 ] || echo "$name without a fault: exit $code: $(cat .test/err)"
  before
  "$CLTOOL" "$@" >/dev/null 2>&1 && check 0 || echo "$name: afterwards it does not work"
  [ "$n" -gt "$at_least" ] && echo "$name: every operation failed once"
}
whole() { # CODE FILE EXPECTED: the file is as expected, or, after a failure, as before
  complaint="$2 is wrong"
  if [ "$1" -eq 0 ] || [ -e "$2" ]; then cmp -s "$2" "$3"; fi
}

before() { rm -rf out cache; }
check() { whole "$1" out/y.npy expected/run/y.npy; }
each_fault "run with an empty cache" run small.onnx -i x.npy -o out -q
before() { rm -rf out; }
each_fault "run with a cache" run small.onnx -i x.npy -o out -q
each_fault "run of files that are read" run small.onnx -i x.npy -o out -q --read-files
before() { rm -f y.npy; }
check() { whole "$1" y.npy expected/y.npy; }
each_fault "predict" predict small.onnx -i x.npy -o y.npy --batch 4 -q
before() { cp expected/pack y.npy; }
check() {
  complaint="the old file is lost"
  if [ "$1" -eq 0 ]; then cmp -s y.npy expected/y.npy; else cmp -s y.npy expected/pack; fi
}
each_fault "predict over a file" predict small.onnx -i x.npy -o y.npy --batch 4 -q --force
before() { rm -f small.dot; }
check() { whole "$1" small.dot expected/small.dot; }
each_fault "inspect --dot" inspect small.onnx --dot small.dot -q
before() { rm -rf pack cache && cp -r expected/cache cache; }
check() {
  complaint="the pack is not one"
  if [ "$1" -ne 0 ]; then [ ! -e pack ]; else "$CLTOOL" cache unpack pack -q >/dev/null 2>&1; fi
}
each_fault "cache pack" cache pack pack -q
before() { rm -rf cache; }
check() {
  complaint="an entry is wrong"
  local entry
  for entry in cache/*.clb; do [ ! -e "$entry" ] || cmp -s "$entry" "expected/$entry" || return 1; done
}
each_fault "cache unpack" cache unpack expected/pack -q

export CLG_SYSTEM_FAULTS_KIND=starts
at_least=1 # a channel to a compile helper, its process, threads that compile and those of streams
before() { rm -rf out cache; }
check() { whole "$1" out/y.npy expected/run/y.npy; }
each_fault "run with an empty cache, starts" run small.onnx -i x.npy -o out -q
before() { rm -rf y.npy cache; }
check() { whole "$1" y.npy expected/y.npy; }
each_fault "predict with an empty cache, starts" predict small.onnx -i x.npy -o y.npy --batch 4 -q
finish
