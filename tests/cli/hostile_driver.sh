#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Drivers that answer nonsense (tests/layers/opencl_hostile.c), or fail now and then
# (opencl_faults.c): cltool gives the right answer, or an error with a message; it does not crash,
# does not hang, and what it stored does not spoil the next run. Mostly without the compile helper,
# so that the layers act on, and count in, the process that is looked at. faults.hostile_driver has
# more numbers. CLG_TEST_SHARE=all: both classes of kernels in each row, more faults.
# ctest: timeout 1800
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
export CLG_DEVICE=pocl CLG_CACHE_DIR=$WORK/cache CLG_COMPILE_HELPER=off
run=(run digits.onnx --fill random:1 -q)
for class in simd simt; do
  "$CLTOOL" "${run[@]}" --kernels $class -o expected --force >/dev/null 2>&1
done
name=$(basename expected/*.npy .npy)
run+=(--expect "$name=expected/$name.npy" --rtol 1e-3)
cp -r cache warm
classes=(simd simt)
rows=0

# A command under the layer. Exit codes are those of the command line's contract. Sets $hostile
# where the driver answered nonsense.
endure() { # ASSIGNMENT ARGS...
  local assignment=$1 code
  shift
  (
    # shellcheck disable=SC2163 # an assignment
    export "$assignment" OPENCL_LAYERS=$layer CLG_HOSTILE_REPORT=1 CLG_FAULTS_REPORT=1
    timeout 120 "$CLTOOL" "$@" >.test/out 2>.test/err
  )
  code=$?
  case $code in
    0) ;;
    1 | 3 | 4 | 5)
      grep -q '^cltool: error: .' .test/err || echo "$assignment: $*: exit $code without a message"
      grep 'NOT as expected' .test/out .test/err && echo "$assignment: $*: a wrong answer"
      ;;
    *) echo "$assignment: $*: exit $code: $(tail -n 3 .test/err)" ;;
  esac
  ! grep -qE '^(faults|hostile driver): [1-9]' .test/err || hostile=yes
}

expect_hostile() { # WHAT
  [ "$hostile" = yes ] || [ "${CLG_COMPILE_HELPER-}" != off ] || echo "$1: the driver was not hostile"
}

# Runs digits with an empty cache and then with what that stored, or with that of a good driver;
# then with a good driver.
row() { # CACHE ASSIGNMENT
  local class
  hostile=no
  for class in "${classes[@]}"; do
    rm -rf cache
    case $1 in
      warm) cp -r warm cache ;;
      empty) endure "$2" "${run[@]}" --kernels "$class" ;;
    esac
    endure "$2" "${run[@]}" --kernels "$class"
    "$CLTOOL" "${run[@]}" --kernels "$class" >/dev/null 2>.test/err ||
      echo "$2: a good driver afterwards: exit $?: $(tail -n 3 .test/err)"
  done
  expect_hostile "$2"
  rows=$((rows + 1))
}
one_class() { # ROW...
  local both=("${classes[@]}")
  [ "${CLG_TEST_SHARE-}" = all ] || classes=("${classes[$((rows % 2))]}")
  row "$@"
  classes=("${both[@]}")
}

layer=$CLG_BUILD_DIR/tests/layers/opencl_hostile.so
for word in sizes sizes,texts many build,log no-binary huge-binary longer-binary wrong-binary; do
  one_class empty "CLG_HOSTILE=$word"
done
unset CLG_COMPILE_HELPER
for word in build,log,texts sizes,wrong-binary; do one_class empty "CLG_HOSTILE=$word"; done
export CLG_COMPILE_HELPER=off
one_class warm CLG_HOSTILE=late
for numbers in all=0 all=1 all=-1 units=0 units=-1 group=0 group=-1 items=0 kernel-group=0 \
  kernel-group=-1 kernel-local=-1 local=-1 memory=-1,alloc=-1 align=-1 vector=-1 dims=-1; do
  one_class warm "CLG_HOSTILE_NUMBERS=$numbers"
done
# Devices are listed in two calls for each platform.
all_gone=(platforms:0 platforms:1 devices:0 devices:1)
vendors=("${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd)
[ ${#vendors[@]} -eq 1 ] || all_gone+=(devices:2)
for gone in "${all_gone[@]}"; do
  one_class warm "CLG_HOSTILE_GONE=$gone"
done
one_command() { # ASSIGNMENT ARGS...
  hostile=no
  endure "$@"
  expect_hostile "$*"
}
# Time stamps matter where time is measured. The states of events: faults.hostile_driver.
for word in times late; do
  one_command "CLG_HOSTILE=$word" profile digits.onnx --fill random:1 -q
  one_command "CLG_HOSTILE=$word" bench digits.onnx --runs 5 -q
done
one_command CLG_HOSTILE=sizes,texts,many devices --diagnose
one_command CLG_HOSTILE_NUMBERS=all=-1 devices --measure
one_command CLG_HOSTILE_NUMBERS=all=0 devices --measure

# CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY at the N-th call and
# each K-th one after it.
layer=$CLG_BUILD_DIR/tests/layers/opencl_faults.so
faults=(0:1 0:2 3:7 20:0 60:40 150:3 200:100)
[ "${CLG_TEST_SHARE-}" != all ] ||
  mapfile -t faults < <(for n in $(seq 0 3 300); do echo "$n:$((n % 13))"; done)
for code in -5 -4 -6; do
  for when in "${faults[@]}"; do one_class warm "CLG_FAULTS=$code:$when"; done
done
unset CLG_COMPILE_HELPER
for when in 0:2 30:7; do one_class empty "CLG_FAULTS=-5:$when"; done
[ "$rows" -ge 50 ] && echo "each driver was endured"
finish
