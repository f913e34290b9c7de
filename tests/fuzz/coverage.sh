#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   tests/fuzz/coverage.sh [--lines] [--corpus FOLDER] [BUILD]
#
# Replays each target's corpus in a build of clang's with coverage (BUILD, default build-coverage)
# and prints the share of lines of each parser file that its targets reach; exit status 1 when one is
# below 80 %. --lines lists the lines that are not reached. --corpus: another folder of corpora than
# tests/fuzz/corpus, such as build-fuzz/fuzz-corpus.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
lines=0
corpus=tests/fuzz/corpus
while [ $# -gt 0 ]; do
  case $1 in
    --lines) lines=1 ;;
    --corpus) corpus=$2 && shift ;;
    *) break ;;
  esac
  shift
done
build=$(realpath -m -- "${1:-build-coverage}")
MIN_PERCENT=80

# The parsers of each target; FILE@TEXT: up to the line with this text.
parsers_of() {
  case $1 in
    onnx) echo src/onnx/onnx_{attribute,data,function,graph,load,names,type}.c src/base/wire/wire.c ;;
    npy) echo src/tensor/formats/npy.c src/tensor/formats/npy_rows.c ;;
    npz) echo src/tensor/formats/npz.c src/tensor/formats/zip_read.c ;;
    proto) echo src/tensor/formats/tensor_proto.c src/tensor/formats/value_proto.c ;;
    csv) echo tools/cltool/lib/data/csv.c ;;
    decoder) echo src/generate/decoder_config.c src/generate/json_config.c ;;
    idx) echo tools/cltool/lib/data/idx.c ;;
    image) echo tools/cltool/lib/data/image.c tools/cltool/lib/vision/image_file.c src/images/*.c ;;
    cache) echo src/ocl/cache/cache_{entry,pack}.c ;;
    tuning) echo 'src/plan/tuning_table.c@-- a problem --' ;; # the rest formats nodes
    records) echo src/session/selftest/selftest_records.c ;;
    helper) echo src/ocl/helper/helper_message.c ;;
    selector) echo src/caps/selector.c ;;
    tokenizer) echo src/text/{added_tokens,charsmap,fields,normalizer,pretokenizer,template,text_decoder,text_pattern_syntax,text_step,tokenizer}.c src/text/models/{bpe,byte_trie,token_model,unigram,wordpiece}.c ;;
  esac
}

flags="-O1 -g -fprofile-instr-generate -fcoverage-mapping"
CC=${CC:-clang} cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_C_FLAGS_DEBUG="$flags" -DCLG_BUILD_TESTS=ON -DCLG_BUILD_EXAMPLES=OFF \
  --log-level=WARNING >/dev/null
cmake --build "$build" --target fuzz_replay >"$build/fuzz-build.log" 2>&1 || {
  tail -n 40 "$build/fuzz-build.log" >&2
  exit 1
}
program=$build/tests/fuzz/fuzz_replay
objects=() # besides the program: the module of images
[ ! -e "$build/clgraph-images.so" ] || objects=(-object "$build/clgraph-images.so")
export CLG_CACHE_DIR=$build/fuzz-cache

status=0
printf '%-9s %-44s %6s %8s %8s\n' target file lines reached share
for target in onnx npy npz proto csv idx image cache tuning records helper selector tokenizer decoder; do
  profile=$build/fuzz-$target
  rm -f "$profile"-*.profraw
  LLVM_PROFILE_FILE=$profile-%m.profraw "$program" "$corpus" "$target" >/dev/null 2>"$profile.log" || {
    cat "$profile.log" >&2
    exit 1
  }
  llvm-profdata merge -sparse "$profile"-*.profraw -o "$profile.profdata"
  llvm-cov export -format=lcov -instr-profile="$profile.profdata" "$program" "${objects[@]}" >"$profile.lcov"
  while IFS= read -r file; do
    last=1000000
    case $file in *@*)
      last=$(grep -nF -- "${file#*@}" "${file%%@*}" | cut -d: -f1 | head -n 1)
      file=${file%%@*}
      ;;
    esac
    # Compilers record paths as they are given them: absolute, or from the build folder.
    awk -v target="$target" -v file="$file" -v min="$MIN_PERCENT" -v show="$lines" -v last="$last" '
      /^SF:/ { inside = substr($0, length($0) - length(file)) == "/" file }
      inside && /^DA:/ {
        split(substr($0, 4), part, ",")
        if (part[1] > last) next
        n++
        if (part[2] > 0) reached++; else missed = missed " " part[1]
      }
      END {
        share = n ? 100 * reached / n : 0
        printf "%-9s %-44s %6d %8d %7.1f%%%s\n", target, file, n, reached, share,
          share < min ? "  below " min "%" : ""
        if (show && missed) print "  not reached:" missed
        exit share < min
      }' "$profile.lcov" || status=1
  done < <(parsers_of "$target" | sed 's/ \(src\|tools\)/\n\1/g')
done
exit $status
