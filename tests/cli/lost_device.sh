#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A device that is lost: cltool predict recovers it and goes on with the first row that is not
# written; it gives up when a row loses the device each time. Other commands end with exit code 5.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy
"$CLTOOL" cache warm digits.onnx -q >/dev/null
export CLG_DEVICE=pocl

# Times, rates and the row at which the loss is seen differ from run to run. So does the call that
# reports it: one after the call that failed says that the device was lost.
any() {
  predict_figures | sed -E -e 's/going on with row [0-9]+/going on with row N/' \
    -e "s/on '[^']*'/on 'DEVICE'/; s/device '[^']*' was/device 'DEVICE' was/" \
    -e "s/was lost: cl[A-Za-z]* failed:/was lost: CALL failed:/" \
    -e "s/cltool: (error: )?device 'DEVICE' was lost: CALL failed:/cltool: CALL failed on 'DEVICE':/" \
    -e "s/(cltool: |error: ).*(clFinish|clWaitForEvents|clEnqueue[A-Za-z]*) failed/\1CALL failed/"
}
predict=(predict digits.onnx -i heldout.npy -o out.npy --force --batch 5)
"$CLTOOL" "${predict[@]}" -q >/dev/null && cp out.npy expected.npy

with_loss() { # CLG_LOST ARGS...
  printf '%s ' "CLG_LOST=$1"
  CLG_LOST=$1 OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_lost.so${OPENCL_LAYERS:+:$OPENCL_LAYERS} show any -- "${@:2}"
}

echo "== lost once, by each kind of call"
for loss in launches:300:-5 launches:301:-36 reads:60:-5 waits:20:-9999; do
  rm -f out.npy
  with_loss "$loss" "${predict[@]}" -q
  cmp out.npy expected.npy && echo "the same bits"
done
echo "== lost again and again, with rows written in between"
rm -f out.npy
with_loss launches:120:-5:3 "${predict[@]}" -q
cmp out.npy expected.npy && echo "the same bits"
echo "== lost by the first rows after it each time: it gives up, and there is no file"
rm -f out.npy
with_loss launches:300:-5:1000000:2 "${predict[@]}" -q
[ -e out.npy ] && echo "there is a file"
echo "== a measurement does not go on"
with_loss launches:300:-5 bench digits.onnx --runs 1000 -q
finish
