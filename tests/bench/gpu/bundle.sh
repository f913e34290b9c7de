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

mkdir -p "$folder/lib" "$folder/bin" "$folder/tests"
cp -P "$build"/libclgraph.so* "$folder/lib/"
cp "$build"/{cltool,clgraph-compile} "$folder/bin/"
cp "$folder/bin/clgraph-compile" "$folder/lib/"
[ ! -f "$build/clgraph-images.so" ] || cp "$build/clgraph-images.so" "$folder/lib/"
cp "$build"/tests/ops/test_* "$build"/tests/api/test_* "$folder/tests/"
strip "$folder"/tests/test_* "$folder"/bin/* "$folder"/lib/clgraph-compile

# Every library that the programs name or open, but those of the C library.
opened=$(ldconfig -p | awk '/libOpenCL\.so\.1 |libclblast\.so\.1 / { print $NF }')
# shellcheck disable=SC2086 # a list of paths
ldd "$build/cltool" "$folder"/tests/test_* "$folder"/lib/*.so $opened | awk '$3 ~ "^/" { print $3 }' |
  cat - <(printf '%s\n' $opened) |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libclgraph)\.so' | sort -u |
  while read -r library; do cp -L "$library" "$folder/lib/"; done
cp "$here"/{run.sh,compare.py,fp16_gemm.py,quantized.py,nbits.py} "$here/../../models/make_models.py" "$folder/"

# Many test programs hold the same library: a large dictionary makes them small together.
pack() { # FOLDER NAME...
  tar -C "$1" -cf - "${@:2}" | xz -T0 --lzma2=preset=4,dict=64MiB
}
pack "$folder" tests >"$folder/tests.tar.xz"
rm -r "$folder/tests"
pack "$folder" lib bin >"$folder/programs.tar.xz"
rm -r "${folder:?}/lib" "${folder:?}/bin"
cases=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
[ ! -d "$cases" ] || pack "$cases" . >"$folder/cases.tar.xz"
if [ $# -gt 0 ]; then
  mkdir "$work/models"
  for models in "$@"; do cp -r "$models/." "$work/models/"; done
  pack "$work/models" . >"$folder/models.tar.xz"
fi
du -sh "$folder"
