#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# No kernel may access memory outside of its buffers: PoCL under layers/opencl_guard.c, where each
# buffer ends, or begins, at an inaccessible page, runs a twentieth of ONNX's cases and the digits
# with both classes of kernels, in this process, where the layer sees every launch.
# CLG_TEST_SHARE=all takes all cases. faults.guard_pages shows that the layer finds accesses; here
# it must find one in a kernel of the library that layers/opencl_wrong.c has altered.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
take_every 20
keep_digits

# Buffers end at a multiple of 4 bytes: kernels load vectors by vloadn, which needs no more. See
# decision 56.
export CLG_DEVICE=pocl CLG_COMPILE_HELPER=off CLG_GUARD_REPORT=1
export CLG_GUARD_ALIGN=${CLG_GUARD_ALIGN:-4}
layers=$CLG_BUILD_DIR/tests/layers
declare -A own
for class in simd simt; do
  check_with "$class, as it is" --kernels "$class"
  own[$class]=$summary
done

# A case at a time: which ones end without a summary.
name_accesses() { # CLASS
  local folder
  for folder in "${cases[@]}"; do
    "$CLTOOL" verify -q --kernels "$1" "$folder" >/dev/null 2>"$work/one"
    [ $? -lt 100 ] || { echo "$folder, $1:"; grep '^guard pages: [a-z]' "$work/one"; }
  done
}

for where in after before; do
  for class in simd simt; do
    what="$class, guards $where"
    export OPENCL_LAYERS=$layers/opencl_guard.so CLG_GUARD=$where
    check_with "$what" --kernels "$class" 2>"$work/err"
    grep '^guard pages' "$work/err"
    [ "$(grep -c '^guard pages: [1-9][0-9]* buffers, [1-9]' "$work/err")" -eq 2 ] ||
      { echo "$what: a process did not end, or launched nothing"; status=1; }
    if grep -q '^guard pages: [a-z]' "$work/err" || [ "$summary" != "${own[$class]}" ]; then
      echo "as it is: ${own[$class]}"
      name_accesses "$class"
      status=1
    fi
  done
done

# One row too many in Softmax: eight rows of the digits' output end where their buffer does.
export CLG_GUARD=after OPENCL_LAYERS=$layers/opencl_wrong.so:$layers/opencl_guard.so
export CLG_WRONG_IN='__kernel void softmax_' CLG_SELFTEST=off
while read -r class CLG_WRONG_FROM; do
  CLG_WRONG_TO="${CLG_WRONG_FROM} + 1"
  export CLG_WRONG_FROM CLG_WRONG_TO CLG_CACHE_DIR=$work/wrong.$class
  "$CLTOOL" run -q "$digits" --fill random:1 --dim batch=8 --kernels "$class" >/dev/null \
    2>"$work/err"
  code=$?
  if [ "$code" -eq 139 ] && grep "^guard pages: access .* kernel 'softmax_" "$work/err"; then
    continue
  fi
  echo "$class, a row too many: exit $code, not found: $(cat "$work/err")"
  status=1
done <<'WRONG'
simd row < outer
simt row < (long)outer * inner
WRONG
exit "$status"
