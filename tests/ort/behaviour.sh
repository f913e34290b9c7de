#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Options, changing shapes, groups, subgraphs, bindings, threads, fork and errors, with tensors in
# memory of the host and of the device: see behaviour.py.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
result=0
for memory in host device; do
  echo "tensors in memory of the $memory"
  CLG_ORT_MEMORY=$memory "$python" "$here/behaviour.py" "$library" \
    "$CLG_SOURCE_DIR/examples/digits/digits.onnx" || result=1
done
if CLG_ORT_MEMORY=disk "$python" "$here/behaviour.py" "$library" nothing 2>&1 |
  grep -q "its values are auto, host and device"; then
  echo 'a place that there is not is refused'
else
  echo 'CLG_ORT_MEMORY=disk should be refused'
  result=1
fi
exit $result
