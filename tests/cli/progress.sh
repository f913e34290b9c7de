#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While a kernel compiles, every command shows that on a terminal; after Ctrl-C it says that it stops,
# and ends soon. A layer has the compiler of the helper process never end for one of the kernels.
# ctest: timeout 600
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
npy '<f4' '(1, 1, 8, 8)' < <(head -c 256 /dev/zero) >x.npy
node=/usr/share/libonnx-testdata/data/node/test_softmax_axis_1
[ -d "$node" ] || exit 77
cp -r "$node" cases

[ -f "$CLG_BUILD_DIR/tests/layers/opencl_crashing.so" ] || exit 77

# interrupted PATTERN ARGUMENT...: with an empty cache; PATTERN is of the line that ends in seconds.
interrupted() {
  printf '$ cltool %s, INT\n' "${*:2}"
  rm -rf cache
  CLG_CACHE_DIR=$WORK/cache python "$CLG_SOURCE_DIR/tests/cli/progress.py" "$1, [0-9]+ s" \
    "$CLTOOL" "${@:2}"
  echo
}
# Many kernels, with names and numbers that differ between devices.
interrupted 'testing kernels [0-9]+/[0-9]+; compiling [^\r]*' selftest --all --kernels simt

export CLG_CRASH_AT=build CLG_CRASH_BY=loop CLG_CRASH_IN=softmax \
  OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_crashing.so
compiling='compiling kernels? [0-9/]+: [a-z0-9_]+'
interrupted "$compiling" run digits.onnx -i x.npy
interrupted "$compiling" predict digits.onnx -i heldout.npy -o y.npy
interrupted "$compiling" diff digits.onnx -i x.npy --against @simt
interrupted "$compiling" gradient digits.onnx -i x.npy --of probabilities
interrupted "$compiling" train digits.onnx -i heldout.npy --target heldout_labels.npy \
  --loss cross-entropy -o trained.onnx
interrupted "$compiling" bench digits.onnx
interrupted "$compiling" profile digits.onnx
interrupted "$compiling" tune digits.onnx
interrupted "$compiling" cache warm digits.onnx
interrupted "$compiling" inspect digits.onnx --plan
interrupted "$compiling" verify cases
rm -rf cache
ls -A
finish
