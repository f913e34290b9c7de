#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Drivers that answer nonsense (tests/layers/opencl_hostile.c), or fail now and then
# (opencl_faults.c): cltool gives the right answer, or an error with a message; it does not crash
# and does not hang, and what it stored does not spoil the next run. In this process, where the
# layers count, and, some of it, in the compile helper.
# ctest: timeout 1800
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
layers=$CLG_BUILD_DIR/tests/layers
export CLG_DEVICE=pocl CLG_CACHE_DIR=$WORK/cache CLG_COMPILE_HELPER=off
run=(run digits.onnx --fill random:1 -q)
for class in simd simt; do "$CLTOOL" "${run[@]}" --kernels $class -o expected -q >/dev/null; done
name=$(basename expected/*.npy .npy)
run+=(--expect "$name=expected/$name.npy" --rtol 1e-3)
cp -r cache warm

# A command under a layer: says what is wrong. Exit codes are those of cltool's contract; 1 is a
# wrong answer.
endures() { # WHAT ARGS...
  local what=$1 code
  shift
  timeout 120 "$CLTOOL" "$@" >.test/out 2>.test/err
  code=$?
  case $code in
    0) ;;
    3 | 4 | 5) grep -q '^cltool: error: .' .test/err || echo "$what: exit $code without a message" ;;
    *) echo "$what: $*: exit $code: $(tail -n 3 .test/err)" ;;
  esac
  [ "$CLG_COMPILE_HELPER" != off ] || grep -qE '^(faults|hostile driver): [1-9]' .test/err ||
    echo "$what: $*: the driver was not hostile"
}
# A run with what is stored by a good driver, one without, one after that; then a good driver.
row() { # ASSIGNMENT ARGS...
  local assignment=$1
  shift
  rm -rf cache && cp -r warm cache
  for _ in 1 2 3; do
    (
      # shellcheck disable=SC2163 # an assignment
      export "$assignment" CLG_HOSTILE_REPORT=1 CLG_FAULTS_REPORT=1
      export OPENCL_LAYERS=$layer
      endures "$assignment" "$@"
    )
    [ -n "${removed-}" ] || rm -rf cache
    removed=yes
  done
  removed=
  "$CLTOOL" "${run[@]}" >/dev/null 2>.test/err || echo "$assignment: afterwards: $(cat .test/err)"
}
rows=0
class_rows() { # ASSIGNMENT
  row "$1" "${run[@]}" --kernels simd
  row "$1" "${run[@]}" --kernels simt
  rows=$((rows + 2))
}

layer=$layers/opencl_hostile.so
for word in sizes texts sizes,texts many build build,log build,log,texts no-binary huge-binary \
  longer-binary wrong-binary late; do
  # With what is stored, nothing is built, and no binary is read.
  [[ $word = build* || $word = *binary ]] && rm -rf warm && mkdir warm
  class_rows CLG_HOSTILE=$word
done
