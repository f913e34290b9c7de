#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs of examples/, run as a newcomer would: exit codes and what they say, on a machine
# without OpenCL too; then both ways of building against an installed clgraph. CLG_VALGRIND=1 runs
# each under valgrind as well, where it is installed: no leak and no bad access of ours.
# ctest: timeout 600
set -u
: "${CLG_BUILD_DIR:?the build folder}" "${CLG_SOURCE_DIR:?the source tree}" "${WORK:?a folder of the test}"
cd "$WORK" || exit 1
unset CLG_DEVICE
bin=$CLG_BUILD_DIR/examples
data=$CLG_SOURCE_DIR/examples/digits
sanitizer=$(sed -n 's/^CLG_SANITIZE:[A-Z]*=//p' "$CLG_BUILD_DIR/CMakeCache.txt")
failed=0

fail() {
  echo "FAILED: $*"
  failed=1
}

# expect CODE WORDS COMMAND...: the exit code, and the words (a pattern) in what is printed,
# standard error included. A NaN among the numbers is a failure: the largest of differences leaves
# it out.
expect() {
  local code=$1 words=$2
  shift 2
  "$@" >out 2>&1
  local got=$?
  if [ "$got" -ne "$code" ] || ! grep -qE -- "$words" out || grep -qiwE -- '-?nan' out; then
    fail "$(basename "$1"): exit code $got, expected $code and '$words':"
    cat out
  fi
}

# ---- what they print ---------------------------------------------------------------------------

expect 0 '^\* [0-9]+:[0-9]+ ' "$bin/list_devices"
expect 0 '^1000 rows on .*largest difference from the host [0-9.]+e-0[5-9]' "$bin/linear_regression"
expect 0 '^batch of 32 on .*largest difference from the host [0-9.]+e-[01]' "$bin/mlp"
expect 0 '^(9[0-9][0-9]|1000) of 1000 images ' "$bin/train_mnist"
expect 0 '^1000000 rows in [0-9.]+ s on .*difference from the host [0-9.]+e[-+][01]' "$bin/stream"
expect 0 '^5000 rows in ' "$bin/stream" 5000
expect 0 '^sigmoid of a buffer .*largest difference [0-9.]+e-0[5-9]' "$bin/opencl_buffer"
expect 0 '^20 images in [0-9.]+ ms on ' "$bin/digits" "$data/digits.onnx" "$data"/images/*.png
cp out answers

# 20 of 20 as the trained model says: FILE DIGIT PERCENT, one decimal place of rounding.
awk -F, 'NR > 1 { print $1, $2, $3 * 100 }' "$data/expected.csv" >wanted
awk '/\.png / { print $1, $2, $3 }' answers >given
if [ "$(wc -l <given)" -ne 20 ] || ! paste -d' ' wanted given | awk '
  { d = $3 - $6; if (d < 0) d = -d; if ($1 != $4 || $2 != $5 || d > 0.051) { print; bad = 1 } }
  END { exit bad }'; then
  fail "digits does not say what expected.csv says:"
  cat answers
fi

# The same program in C++, where there is a compiler for it.
if [ -x "$bin/digits_cpp" ]; then
  expect 0 '^20 images in [0-9.]+ ms on ' "$bin/digits_cpp" "$data/digits.onnx" "$data"/images/*.png
  diff <(grep '%$' answers) <(grep '%$' out) || fail "digits_cpp says something else than digits"
  expect 2 '^usage: digits_cpp MODEL IMAGE' "$bin/digits_cpp"
  expect 1 'no-model.onnx' "$bin/digits_cpp" no-model.onnx "$data/images/00.png"
  expect 1 'no-picture.png' "$bin/digits_cpp" "$data/digits.onnx" no-picture.png
  CLG_DEVICE=no-such-device expect 3 "no device matches 'no-such-device'" \
    "$bin/digits_cpp" "$data/digits.onnx" "$data/images/00.png"
else
  echo "there is no C++ compiler: digits_cpp was not tried"
fi

# IDX files: 200 black images of class 0.
mkdir -p idx
for set in train t10k; do
  { printf '\0\0\10\3\0\0\0\310\0\0\0\34\0\0\0\34' && head -c $((200 * 784)) /dev/zero; } >idx/$set-images-idx3-ubyte
  { printf '\0\0\10\1\0\0\0\310' && head -c 200 /dev/zero; } >idx/$set-labels-idx1-ubyte
done
expect 0 '^200 of 200 images ' "$bin/train_mnist" idx
head -c 100 idx/t10k-labels-idx1-ubyte >short && mv short idx/t10k-labels-idx1-ubyte
expect 1 'damaged' "$bin/train_mnist" idx
expect 1 "'no-folder/train-images-idx3-ubyte' is not there" "$bin/train_mnist" no-folder

expect 2 '^usage: digits MODEL IMAGE' "$bin/digits"
expect 1 'no-model.onnx' "$bin/digits" no-model.onnx "$data/images/00.png"
expect 1 'no-picture.png' "$bin/digits" "$data/digits.onnx" no-picture.png
expect 1 'expected.csv' "$bin/digits" "$data/digits.onnx" "$data/expected.csv"
CLG_DEVICE=no-such-device expect 3 "no device matches 'no-such-device'" \
  "$bin/digits" "$data/digits.onnx" "$data/images/00.png"

# ---- without OpenCL ------------------------------------------------------------------------------

mkdir -p no-drivers
for program in list_devices linear_regression mlp train_mnist stream; do
  OCL_ICD_VENDORS=$WORK/no-drivers expect 3 "pocl-opencl-icd" "$bin/$program"
done
OCL_ICD_VENDORS=$WORK/no-drivers expect 3 "pocl-opencl-icd" "$bin/digits" "$data/digits.onnx" "$data/images/00.png"
OCL_ICD_VENDORS=$WORK/no-drivers expect 3 "OpenCL error" "$bin/opencl_buffer"

# ---- under valgrind ------------------------------------------------------------------------------
# Drivers see a lesser CPU there, and compile for minutes: so PoCL takes the same one without
# valgrind first, and the programs wait in the store.

checked() { # COMMAND...
  valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect --suppressions="$CLG_SOURCE_DIR/tests/support/valgrind.supp" \
    "$@" >out 2>&1
  local code=$?
  if [ "$code" -ne 0 ]; then
    fail "valgrind: $(basename "$1"): exit code $code:"
    cat out
  fi
}
each() { # RUNNER...
  "$@" "$bin/list_devices"
  "$@" "$bin/linear_regression"
  "$@" "$bin/mlp"
  "$@" "$bin/stream" 10000
  "$@" "$bin/opencl_buffer"
  "$@" "$bin/digits" "$data/digits.onnx" "$data"/images/*.png
}
under_valgrind() { (
  mkdir -p pocl
  cp /etc/OpenCL/vendors/*pocl* pocl/
  export OCL_ICD_VENDORS=$WORK/pocl CLG_CACHE_DIR=$WORK/valgrind-cache
  export POCL_KERNELLIB_NAME=avx2 CLG_DEVICE_FLOATS=8 OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_device.so
  each env >/dev/null
  each checked
  exit $failed
); }
if [ "${CLG_VALGRIND-}" = 1 ] && [ "$sanitizer" = OFF ] && command -v valgrind >/dev/null; then
  if under_valgrind; then echo "valgrind: no leak of ours in the examples"; else failed=1; fi
fi

# ---- installed -----------------------------------------------------------------------------------

prefix=$WORK/prefix
flags=
case $sanitizer in
  OFF) ;;
  thread) flags=-fsanitize=thread ;;
  *) flags=-fsanitize=address,undefined ;;
esac
cmake --install "$CLG_BUILD_DIR" --prefix "$prefix" >out 2>&1 || {
  fail "cmake --install:"
  cat out
}
pc=$(find "$prefix" -name clgraph.pc)
lib=$(dirname "$(dirname "$pc")")
expect 0 'clgraph[./]clgraph.h$' find "$prefix/include/clgraph" -name clgraph.h
if command -v readelf >/dev/null; then # until 1.0, MAJOR.MINOR; then MAJOR
  abi=$(sed -nE 's/^Version: (0\.[0-9]+|[0-9]+).*/\1/p' "$pc")
  expect 0 "SONAME.*libclgraph.so.${abi/./[.]}\]" readelf -d "$lib/libclgraph.so"
  expect 0 "clg_version@@CLGRAPH_${abi/./[.]}\$" \
    sh -c "readelf -W --dyn-syms '$lib/libclgraph.so' | sed 's/ *\$//'"
fi
expect 0 . cmake -S "$CLG_SOURCE_DIR/examples/installed" -B by-cmake "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_FLAGS=$flags"
expect 0 . cmake --build by-cmake
expect 0 '^clgraph [0-9.]+ on .*: probabilities has 10 elements' by-cmake/predict "$data/digits.onnx"
cp -r "$CLG_SOURCE_DIR/examples/installed" by-make
if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$lib/pkgconfig CFLAGS=$flags expect 0 . make -C by-make predict
  LD_LIBRARY_PATH=$lib expect 0 '^clgraph [0-9.]+ on .*: probabilities has 10 elements' by-make/predict "$data/digits.onnx"
  if [ -x "$bin/digits_cpp" ]; then
    PKG_CONFIG_PATH=$lib/pkgconfig CXXFLAGS=$flags expect 0 . make -C by-make predict_cpp
    LD_LIBRARY_PATH=$lib expect 0 '^clgraph [0-9.]+ on .*: probabilities has 10 elements' by-make/predict_cpp "$data/digits.onnx"
  fi
else
  echo "pkg-config is not installed: the Makefile was not tried"
fi
# The static library defines clg_* alone; programs that contain it need no libclgraph.so, and start
# the compile helper where it is installed ($CLG_COMPILE_HELPER here: the prefix is another).
if [ -f "$lib/libclgraph.a" ]; then
  helpers=("$lib"/clgraph-*/clgraph-compile)
  export CLG_COMPILE_HELPER=${helpers[0]}
  cp -r "$CLG_SOURCE_DIR/examples/installed" static-cmake
  sed -i 's/clgraph::clgraph/&_static/' static-cmake/CMakeLists.txt
  expect 0 . cmake -S static-cmake -B static-cmake/build "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_FLAGS=$flags"
  expect 0 . cmake --build static-cmake/build
  expect 0 '^clgraph [0-9.]+ on .*: probabilities has 10 elements' static-cmake/build/predict "$data/digits.onnx"
  if command -v readelf >/dev/null; then
    ! readelf -d static-cmake/build/predict | grep libclgraph || fail "the static program needs libclgraph.so"
    expect 0 '^clg_version$' sh -c "nm -g --defined-only '$lib/libclgraph.a' | sed -n 's/.* [A-Z] //p'"
    ! nm -g --defined-only "$lib/libclgraph.a" | sed -n 's/.* [A-Z] //p' | grep -v '^clg_' ||
      fail "libclgraph.a defines the names above, which programs may have too"
  fi
  if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$lib/pkgconfig expect 0 'libpcre2-8|-lpcre2-8' pkg-config --static --libs clgraph
    words=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --static --libs clgraph)
    # shellcheck disable=SC2086 # options and libraries, one word each
    expect 0 '^$' sh -c "cc -std=c11 $flags '$CLG_SOURCE_DIR/examples/installed/predict.c' \
      -o static-pc ${words//-lclgraph/-l:libclgraph.a} && echo"
    expect 0 '^clgraph [0-9.]+ on .*: probabilities has 10 elements' ./static-pc "$data/digits.onnx"
  fi
  unset CLG_COMPILE_HELPER
fi
LD_LIBRARY_PATH='' expect 0 "$(sed -nE 's/^Version: (.*)/\1/p' "$pc")" "$prefix/bin/cltool" --version

exit $failed
