#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool devices: the shape of what it prints, since devices differ; selectors; a machine without
# OpenCL.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

# The names of the rows, each once, in the order of the first device.
rows() { sed -nE 's/^    ([a-z]+) .*/\1/p' | awk '!seen[$0]++' | grep -vE 'problem|quirks'; }
first_line() { head -n 1; }

echo "== text: the rows of a device"
show rows -- devices
echo "== exactly one device is the default"
"$CLTOOL" devices | grep -c '^\* [0-9]*:[0-9]* '
echo "== JSON: the keys"
show json_keys -- devices --json
echo "== measured"
"$CLTOOL" devices --measure >measured || echo "it failed"
grep -qE '^    arithmetic +fp32 [0-9]+ GFLOP/s' measured && echo "arithmetic"
grep -qE '^    bandwidth +memory [0-9.]+ GB/s' measured && echo "bandwidth"
grep -qE '^    launch +[0-9.]+ us' measured && echo "launch"
echo "== diagnosis"
"$CLTOOL" devices --diagnose >report || echo "it failed"
[ -s report ] && echo "there is a report"
"$CLTOOL" devices --diagnose --json | json_keys

echo "== which library is used, and why others are not"
libraries=$CLG_BUILD_DIR/tests/libraries
mkdir old pixel
ln -s "$libraries/fake_opencl.so" old/libOpenCL.so.1
ln -s "$libraries/fake_pixel.so" pixel/libOpenCL.so.1
tried() { sed -nE "s/^  ('[^']*OpenCL[^']*'): (.*)/\1 \2/p"; }
LD_LIBRARY_PATH=$WORK/old "$CLTOOL" devices --diagnose | tried
# Its functions are those of the system's library.
CLG_FAKE_OPENCL=libOpenCL.so LD_LIBRARY_PATH=$WORK/pixel "$CLTOOL" devices --diagnose | tried
CLG_FAKE_OPENCL=libOpenCL.so LD_LIBRARY_PATH=$WORK/pixel "$CLTOOL" devices |
  grep -c '^\* [0-9]*:[0-9]* '

echo "== quirks of a driver that was not seen are measured once"
unseen() {
  OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_wrong.so CLG_WRONG_DRIVER='=2.9' \
    CLG_CACHE_DIR=$WORK/unseen "$CLTOOL" devices "$@" 2>&1
}
unseen -vv | grep -c "quirks were measured"
unseen >first
unseen -vv | grep -c "quirks were measured"
unseen | cmp - first && echo "the answers are kept"

# Selectors, by a command that uses one device.
digits digits.onnx
try() {
  if "$CLTOOL" run digits.onnx --fill zeros -q "$@" >out 2>err; then
    echo "works:${*:+ $*}"
  else
    echo "exit $?: $*"
    normal <err | head -n 1
  fi
}
echo "== selectors"
try
try -d auto
try -d AUTO
try -d 0:0
try -d all
id=$("$CLTOOL" devices --json | sed -nE 's/^ *"id": "(.*)",/\1/p' | head -n 1)
"$CLTOOL" run digits.onnx --fill zeros -q -d "$id" >/dev/null && echo "-d id:... works"
try -d no-such-device --fallback auto
CLG_DEVICE=no-such-device try -d 0:0

echo "== nothing matches: what there is gets listed"
# A listing of the devices follows, which are the machine's.
show first_line -- run digits.onnx --fill zeros -q -d no-such-device
show first_line -- run digits.onnx --fill zeros -q -d 97:0
show first_line -- run digits.onnx --fill zeros -q -d ''
CLG_DEVICE=no-such-device
export CLG_DEVICE
show first_line -- run digits.onnx --fill zeros -q
unset CLG_DEVICE

echo "== a driver that no .icd file names, and one that is named"
mkdir unnamed named named/vendors
ln -s "$libraries/fake_opencl.so" unnamed/libamdocl64.so
named() { grep libamdocl64 | sed -E "s#'[^']*/(AMD.icd)'#'VENDORS/\1'#"; }
LD_LIBRARY_PATH=$WORK/unnamed "$CLTOOL" devices --diagnose | named
echo "$WORK/unnamed/libamdocl64.so" >named/vendors/amd.icd
OCL_ICD_VENDORS=$WORK/named/vendors LD_LIBRARY_PATH=$WORK/unnamed "$CLTOOL" devices --diagnose | named | sed "s#$WORK#WORK#g"

echo "== no OpenCL platform"
mkdir no-vendors
export OCL_ICD_VENDORS=$WORK/no-vendors
show devices
show devices --json
show run digits.onnx --fill zeros
"$CLTOOL" devices --diagnose >report
echo "diagnosis: exit $?"
[ -s report ] && echo "there is a report"
show inspect digits.onnx
finish
