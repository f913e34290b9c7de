#!/bin/bash -eu
# SPDX-License-Identifier: Apache-2.0
#
# OSS-Fuzz's build script: $SRC has the source, $WORK is for the build, $OUT gets one program a
# target with its corpus (TARGET_seed_corpus.zip), dictionary (TARGET.dict) and options. CC, CFLAGS
# and LIB_FUZZING_ENGINE are given; the sanitizers are in CFLAGS, so that CLG_SANITIZE stays off.
cd "${SRC:?}/clgraph"
build=${WORK:?}/clgraph
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCLG_FUZZ=ON -DCLG_BUILD_TESTS=ON \
  -DCLG_BUILD_EXAMPLES=OFF -DCLG_HARDENING=OFF
ninja -C "$build" fuzz_all clgraph-compile

mkdir -p "${OUT:?}/lib"
for source in tests/fuzz/libfuzzer/fuzz_*.c; do
  target=${source##*/fuzz_}
  target=${target%.c}
  # Without PoCL nothing runs: `onnx` has the rest of it.
  [ "$target" != run ] || continue
  cp "$build/tests/fuzz/$target" "$OUT/$target"
  # The libraries that are not on the machine that runs it.
  ldd "$OUT/$target" | awk '/=> \// { print $3 }' |
    grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
    while read -r library; do cp -Lu "$library" "$OUT/lib/"; done
  # shellcheck disable=SC2016 # $ORIGIN is the loader's
  patchelf --set-rpath '$ORIGIN/lib' "$OUT/$target"
  (cd "tests/fuzz/corpus/$target" && zip -q -r "$OUT/${target}_seed_corpus.zip" .)
  printf '[libfuzzer]\nmax_len = 4096\ntimeout = 25\n' >"$OUT/$target.options"
  if [ -f "tests/fuzz/dictionaries/$target.dict" ]; then
    cp "tests/fuzz/dictionaries/$target.dict" "$OUT/"
  fi
done
"$build/tests/fuzz/make_corpus" --dictionary "$OUT/onnx.dict"
