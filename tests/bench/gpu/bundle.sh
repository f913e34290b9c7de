#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a machine with a GPU needs to try clgraph when nothing can be installed there: cltool, the
# library, the tests of operators and of the interface, ONNX's node cases, models, and the Debian
# libraries that they open, in one folder:
#
#   tests/bench/gpu/bundle.sh FOLDER [BUILD [MODELS...]]
#
# FOLDER is replaced. BUILD (default build) is a Release build with tests. MODELS are folders for
# `cltool verify`. Run FOLDER/run.sh there; both machines are of one architecture, and the other's C
# library is not older than this one's.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: bundle.sh FOLDER [BUILD [MODELS...]]" >&2
  exit 2
fi
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$1 build=${2:-$here/../../../build}
shift
[ $# -eq 0 ] || shift
if [ ! -x "$build/cltool" ]; then
  echo "bundle.sh: there is no cltool in $build" >&2
  exit 1
fi
build=$(cd -- "$build" && pwd)
rm -rf -- "$folder"
mkdir -p -- "$folder"
folder=$(cd -- "$folder" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download -q ocl-icd-libopencl1 libclblast1 libjansson4 libcmocka0 libxxhash0 libstb0 zlib1g libpcre2-8-0 >/dev/null)
mkdir "$work/root"
for package in "$work"/*.deb; do dpkg -x "$package" "$work/root"; done

mkdir -p "$folder/lib" "$folder/bin" "$folder/tests"
find "$work/root" -name '*.so.*' -exec cp -P {} "$folder/lib/" \;
cp -P "$build"/libclgraph.so* "$folder/lib/"
cp "$build/cltool" "$folder/bin/"
cp "$build"/tests/ops/test_* "$build"/tests/api/test_* "$folder/tests/"
strip "$folder"/tests/test_* "$folder/bin/cltool"
cp "$here"/{run.sh,compare.py,fp16_gemm.py,quantized.py} "$here/../../models/make_models.py" "$folder/"

# Many test programs hold the same library: together they are small.
tar -C "$folder" -cf - tests | xz -T0 -9 --lzma2=dict=64MiB >"$folder/tests.tar.xz"
rm -r "$folder/tests"
cases=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
[ ! -d "$cases" ] || tar -C "$cases" -cf - . | xz -T0 -6 >"$folder/cases.tar.xz"
if [ $# -gt 0 ]; then
  mkdir "$work/models"
  for models in "$@"; do cp -r "$models/." "$work/models/"; done
  tar -C "$work/models" -cf - . | xz -T0 -3 >"$folder/models.tar.xz"
fi
du -sh "$folder"
