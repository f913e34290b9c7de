#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 900
#
# No kernel may access memory outside of its buffers in mutated models either: the inputs of the
# fuzz target `run` are loaded and run under layers/opencl_guard.c, with guard pages after and before
# each buffer and both classes of kernels. CLG_FUZZ_CORPUS is a folder with a folder `run` in it
# (default tests/fuzz/corpus): after `tests/fuzz/run.sh run SECONDS`, that is build-fuzz/fuzz-corpus.
set -u
replay=${CLG_BUILD_DIR:?}/tests/fuzz/fuzz_replay
corpus=${CLG_FUZZ_CORPUS:-$CLG_SOURCE_DIR/tests/fuzz/corpus}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_guard.so CLG_GUARD_REPORT=1
export CLG_GUARD_ALIGN=${CLG_GUARD_ALIGN:-4} CLG_COMPILE_HELPER=off
status=0
for CLG_GUARD in after before; do
  for CLG_TEST_KERNELS in simd simt; do
    export CLG_GUARD CLG_TEST_KERNELS
    "$replay" "$corpus" run >"$work/out" 2>&1
    code=$?
    echo "$CLG_TEST_KERNELS, guards $CLG_GUARD: exit $code"
    grep -E '^(run:|guard pages: [0-9])' "$work/out"
    # The layer's line at the end says how many buffers it guarded and how many launches it saw.
    if [ "$code" -ne 0 ] || grep -q '^guard pages: [a-z]' "$work/out" ||
      ! grep -qE '^guard pages: [1-9][0-9]* buffers, [1-9]' "$work/out"; then
      tail -n 20 "$work/out"
      status=1
    fi
  done
done
exit "$status"
