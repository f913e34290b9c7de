#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs that models need with the kernels for GPUs, generated ones included, through the
# compilers of GPU vendors: ONNX's node tests, 200 random graphs and, where it is there, a folder of
# models, run on PoCL below a layer that writes texts. Rows at the heads of kernel files, which
# tools/portability.sh takes, are chosen by hand; these are what really comes.
#
#   tools/portability_models.sh BUILD [OPTION of tools/portability.sh]...      default: --all
#
# BUILD is a build with tests. CLG_TEST_MODELS names the folder of models, CLG_TEST_SEEDS other
# random graphs, FIRST:COUNT. A part that brings no program fails, and what fails in
# tools/portability.sh.
set -euo pipefail
build=$(cd "${1:?a build folder}" && pwd)
shift
[ $# -gt 0 ] || set -- --all
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/texts"
export OPENCL_LAYERS=$build/tests/layers/opencl_texts.so CLG_TEXTS=$work/texts CLG_SOURCE_DIR=$PWD CLG_BUILD_DIR=$build
n_before=0
collect() { # NAME COMMAND...: each with an empty cache, since cached programs have no text
  local name=$1 n
  shift
  CLG_CACHE_DIR=$work/$name "$@" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log"
    echo "$name: failed" >&2
    exit 1
  }
  n=$(find "$work/texts" -name '*.cl' | wc -l)
  echo "$name: $((n - n_before)) programs that were not there before; $(grep -v '^$' "$work/log" | tail -n 1)"
  [ "$n" -gt "$n_before" ] || exit 1
  n_before=$n
}

data=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
models=${CLG_TEST_MODELS:-../shared/models}
export CLG_TEST_SEEDS=${CLG_TEST_SEEDS:-1:200}
[ ! -d "$data" ] || collect nodes "$build/cltool" verify -q --kernels simt --no-blas "$data"
[ ! -f "$models/tolerance.json" ] || collect models "$build/cltool" verify -q --kernels simt --no-blas \
  --tolerance "$models/tolerance.json" "$models"
collect random "$build/tests/api/test_random_sessions" '*simt'
unset OPENCL_LAYERS

tools/portability.sh "$@" --texts "$work/texts"
