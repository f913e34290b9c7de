#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool cache: the store from empty to packed, and folders that cannot be used.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
export CLG_CACHE_DIR=$WORK/store
export POCL_CACHE_DIR=$WORK/pocl

# How many programs a driver needs and their sizes are the planner's affair.
count() { sed -E 's/\b[1-9][0-9]*(\.[0-9]+)? (entr(y|ies)|programs?|were|k?M?B)/N \2/g; s/entry/entries/; s/\b[kM]B/bytes/g; s/"removed": [1-9][0-9]*/"removed": N/'; }

show cache path
show cache path --json
show cache list
show cache clear
show count -- cache warm digits.onnx -q
echo "== warm: a run compiles nothing"
show count -- cache warm digits.onnx -q
"$CLTOOL" cache warm digits.onnx -q --json | grep '"compiled"'
"$CLTOOL" cache list | tail -n 1 | normal | count
show json_keys -- cache list --json
echo "== packed and unpacked elsewhere"
show count -- cache pack programs.pack
show cache pack programs.pack
show cache pack programs.pack --force
CLG_CACHE_DIR=$WORK/other show count -- cache unpack programs.pack
CLG_CACHE_DIR=$WORK/other "$CLTOOL" cache warm digits.onnx -q --json | grep '"compiled"'
head -c 100 programs.pack >short.pack
show cache unpack short.pack
show cache unpack digits.onnx
show cache unpack nothing.pack
echo "== damaged entries are made again"
for entry in "$WORK"/other/*; do
  [ -f "$entry" ] && printf 'damage' | dd of="$entry" bs=1 seek=60 conv=notrunc status=none
done
CLG_CACHE_DIR=$WORK/other show count -- cache warm digits.onnx -q
CLG_CACHE_DIR=$WORK/other show count -- cache warm digits.onnx -q
any_driver() { sed -E "s/driver '[^']*' on '[^']*'/driver 'X' on 'Y'/"; }
echo "== what is known of compilers that died, on a driver that dies of one kernel"
export CLG_CACHE_DIR=$WORK/crashes OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_crashing.so
CLG_CRASH_IN='void softmax' CLG_CRASH_AT=launch show any_driver -- run digits.onnx --fill zeros -q --top 1
"$CLTOOL" cache list | grep -o 'compiler crash.*' | sort
show any_driver -- run digits.onnx --fill zeros -q --top 1
"$CLTOOL" cache clear --crashes
show run digits.onnx --fill zeros -q --top 1
unset OPENCL_LAYERS
export CLG_CACHE_DIR=$WORK/store
echo "== fewer"
show count -- cache prune --max-size 1k
show cache prune --max-size lots
show cache list
show count -- cache warm digits.onnx -q
show count -- cache clear --json
"$CLTOOL" cache clear

echo "== a folder that cannot be used: one warning, and the work is done"
: >file
CLG_CACHE_DIR=$WORK/file show run digits.onnx --fill zeros --top 1
CLG_CACHE_DIR=/proc/none show run digits.onnx --fill zeros --top 1
CLG_CACHE_DIR=$WORK/file show cache list
CLG_CACHE_DIR=$WORK/file show cache clear
finish
