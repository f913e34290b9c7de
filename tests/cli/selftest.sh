#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 900
#
# cltool selftest: the report, what it keeps, and how a driver that miscompiles shows.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
CLG_CACHE_DIR=$WORK/store CLG_DEVICE=pocl
export CLG_CACHE_DIR CLG_DEVICE

# What is the machine's is left out: device and driver, errors, and which implementations there are
# to test, which vectors, units and CLBlast decide. What must be there everywhere is selected by
# name.
report() {
  sed -E -e 's/^(device|platform|driver|OpenCL|quirks)( +).*/\1 TEXT/' -e 's/^clgraph +.*/clgraph VERSION/' -e 's/ +/ /g' |
    awk '
      # passed OPERATOR PROBLEM IMPLEMENTATION [(alone)] KERNEL ERROR ALLOWED
      /^passed / && NF >= 7 && $NF > 0 && $NF < 0.1 && $(NF - 1) >= 0 && $(NF - 1) <= $NF { n_passed++; next }
      /^(passed|FAILED) / { print "not like a row of a case:", $0; next }
      /^[0-9]+ passed, / { print ($1 == n_passed ? "as many" : "not as many, " n_passed), "passed as there are rows,", $3, $4; next }
      { print }'
}
# Each of these operators has a row, for these implementations where they are in every class of
# devices.
expect_rows() { # FILE OPERATOR[:IMPLEMENTATION]...
  local file=$1 row
  shift
  for row in "$@"; do
    awk -v row="$row" '
      BEGIN { split(row, want, ":") }
      /^passed / && $2 == want[1] { for (i = 4; i < NF; i++) if (want[2] == "" || $i == want[2]) found = 1 }
      END { exit !found }' "$file" || echo "no row for $row"
  done
}

show report -- selftest -q
expect_rows "$WORK/.test/out" MatMul:gemm_simd Gemm:gemm_simd FusedGemm:gemm_simd FusedMatMul:gemm_simd FusedConv:conv_simd \
  FusedConv:winograd_4x4 FusedConv:conv_direct Conv:conv_depthwise_simd BlockedConv:conv_blocked \
  AttentionCore:attention_tiles AttentionCore:attention_rows
echo "entries of the cache: $("$CLTOOL" cache list | grep -c 'results of self-tests')"
show json_keys -- selftest -q --json
show selftest --kernels narrow
show selftest model.onnx

echo "== kernels without an alternative"
"$CLTOOL" selftest --all -q >all.txt
echo "exit $?"
alone=$(grep -c '(alone)' all.txt)
[ "$alone" -ge 100 ] && echo "at least 100 of them are tested" || echo "$alone are tested"
expect_rows all.txt Add AttentionCore:attention_rows AveragePool BatchNormalization BlockedConv Concat Conv Div Erf Exp FusedConv FusedGemm FusedMatMul Gather \
  Gelu Gemm GlobalAveragePool GlobalMaxPool InstanceNormalization LayerNormalization Log LogSoftmax MatMul Max MaxPool Min Mul \
  Pow ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare Relu Sigmoid Softmax Sqrt Sub Tanh

echo "== a driver that miscompiles"
# In one implementation, the rest of a row after its last whole vector is one too large.
export OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_wrong.so${OPENCL_LAYERS:+:$OPENCL_LAYERS} CLG_WRONG_DRIVER=.1
export CLG_WRONG_IN='#define P_M 4' CLG_WRONG_FROM='r[c] = line[i + c];'
export CLG_WRONG_TO='r[c] = line[i + c] + (float)(width - i < P_VEC);'
# Which problems show it depends on their widths and the vectors'.
failed() { awk '/^FAILED/ { for (i = 4; i < NF; i++) if ($i ~ /^winograd/) print $1, $2, $i }' | sort -u; }
show failed -- selftest -q
digits digits.onnx
for selftest in on off; do
  nodes=$(CLG_SELFTEST=$selftest "$CLTOOL" inspect digits.onnx --plan --disable-pass blocked --prefer winograd_4x4 2>err |
    grep -c 'FusedConv *winograd_4x4')
  echo "self-tests $selftest: $nodes nodes by winograd_4x4, $(grep -c 'gives wrong results' err) warnings"
done
finish
