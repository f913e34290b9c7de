#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A rank of cltool predict that ends at each of its operations on files in turn: by a failure, by a
# signal, or as its machine loses power, when what was not synced is lost. No file that looks
# complete is there unless it is; --resume makes the file of one process.
# ctest: label slow timeout 900
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
unset "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
library=system_faults.so
LD_LIBRARY_PATH=$(libraries)
export LD_LIBRARY_PATH
if grep -qE '^CLG_SANITIZE:[A-Z]+=(ON|thread)$' "$CLG_BUILD_DIR/CMakeCache.txt"; then
  echo "skipped: the sanitizer's library must be loaded first" >&3
  exit 77
fi
two_graph() { # y = relu(x), z = -x
  onnx_node Relu relu x y
  onnx_node Neg neg x z
  pb_text 2 two
  onnx_input x 1 N 4
  onnx_output y 1 N 4
  onnx_output z 1 N 4
}
onnx_model two_graph >two.onnx
for i in $(seq 7); do f32 "3f80000$i" "c000000$i" "4040000$i" "c080000$i"; done | npy '<f4' '(7, 4)' >x.npy
args=(predict two.onnx -i x.npy --batch 1 -o y=out/y.npy -o z=out/z.npy -q)
rank() { env PMIX_NAMESPACE="$1" OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK="$2" "$CLTOOL" "${args[@]}" "${@:3}"; }
mkdir out
"$CLTOOL" "${args[@]}" >/dev/null 2>&1 && mv out one
mkdir out
rank a 0 >/dev/null 2>&1 && mv out begun # rank 0 is complete

# Prints what is wrong after rank 1 ended with the code $1.
look() {
  local file named=0
  for file in y z; do
    [ -e out/$file.npy ] || continue
    named=$((named + 1))
    cmp -s one/$file.npy out/$file.npy || echo "$file.npy is wrong"
  done
  [ "$1" -ne 0 ] || [ $named -eq 2 ] || echo "exit 0 without the files"
}
resume() {
  rank b 0 --resume && rank b 1 --resume
} >/dev/null 2>.test/resume.err

each_end() { # NAME VARIABLE=VALUE...
  local name=$1 n code wrong left
  shift
  for n in $(seq 1000); do
    rm -rf out fired && cp -r begun out
    ( # a subshell, which prints nothing when the process is killed
      env "$@" CLG_SYSTEM_FAULTS="$n" CLG_SYSTEM_FAULTS_UNDER="$WORK" \
        CLG_SYSTEM_FAULTS_FIRED="$WORK/fired" LD_PRELOAD="$library" \
        PMIX_NAMESPACE=a OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 "$CLTOOL" "${args[@]}" >.test/out 2>.test/err
      exit $?
    ) 2>/dev/null
    code=$?
    [ -e fired ] || break
    wrong=$(look $code)
    [ $code -eq 0 ] || [ $code -gt 128 ] || grep -q '^cltool: error: .' .test/err || wrong+=" no message"
    resume || wrong+=" --resume fails: $(cat .test/resume.err)"
    cmp one/y.npy out/y.npy >/dev/null && cmp one/z.npy out/z.npy >/dev/null || wrong+=" other bytes after --resume"
    left=$(find out -name '*.part*' ! -name '*.tmp.*')
    [ -z "$left" ] || wrong+=" left: $left"
    [ -z "$wrong" ] || echo "$name, operation $n: exit $code: $wrong"
  done
  [ "$n" -gt 20 ] && echo "$name: at each operation once"
}
each_end "a failure" CLG_SYSTEM_FAULTS_KIND=files
each_end "a signal" CLG_SYSTEM_FAULTS_DEATH=kill
each_end "no power" CLG_SYSTEM_FAULTS_DEATH=power
finish
