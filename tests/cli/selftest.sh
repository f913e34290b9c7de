#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 900
#
# cltool selftest: the report, what it keeps, and how a driver that miscompiles shows.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
CLG_CACHE_DIR=$WORK/store CLG_DEVICE=pocl
export CLG_CACHE_DIR CLG_DEVICE

# Device, errors and columns are the machine's; so are the ways by CLBlast, which may not be there, and how many channels are
# in a block. Each line once.
report() {
  sed -E -e 's/^(device|platform|driver|OpenCL|quirks)( +).*/\1 TEXT/' -e 's/^clgraph +.*/clgraph VERSION/' \
    -e 's/ +[-+.0-9e]+ +([-+.0-9e]+)$/ N \1/' -e 's/ +/ /g' -e '/ BlockedConv /s/float32\[[^ ]*\]c? //g' -e '/ CLBlast /d' -e 's/^[0-9]+ passed/N passed/'
}

show report -- selftest -q
echo "entries of the store: $("$CLTOOL" cache list | grep -c 'verdicts of self-tests')"
show json_keys -- selftest -q --json
show selftest --kernels narrow
show selftest model.onnx

echo "== kernels without an alternative"
"$CLTOOL" selftest --all -q >all.txt
echo "exit $?"
alone=$(grep -c '(alone)' all.txt)
[ "$alone" -ge 100 ] && echo "at least 100 of them are tested" || echo "$alone are tested"
awk '/^passed/ { print $2 }' all.txt | sort -u | tr '\n' ' '
echo

echo "== a driver that miscompiles"
# What is left of a line behind its last whole vector is one too large, in one of the ways.
export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_wrong.so CLG_WRONG_DRIVER=.1
export CLG_WRONG_IN='#define P_M 4' CLG_WRONG_FROM='r[c] = line[i + c];'
export CLG_WRONG_TO='r[c] = line[i + c] + (float)(width - i < P_VEC);'
failed() { report | grep -E '^FAILED|passed, ' | awk '{ $(NF - 1) = /^FAILED/ ? "N" : $(NF - 1); print }'; }
show failed -- selftest -q
digits digits.onnx
for selftest in on off; do
  ways=$(CLG_SELFTEST=$selftest "$CLTOOL" inspect digits.onnx --plan --disable-pass blocked --prefer winograd_4x4 2>err |
    grep -c 'FusedConv *winograd_4x4')
  echo "self-tests $selftest: $ways nodes by winograd_4x4, $(grep -c 'gives wrong results' err) warnings"
done
finish
