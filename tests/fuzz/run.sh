#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   tests/fuzz/run.sh TARGET|all SECONDS [BUILD]
#
# Builds the fuzz targets with clang into BUILD (default build-fuzz), runs one, or each in turn, for
# that many seconds, and prints what all pieces of this commit sum to: executions, seconds, coverage
# and findings of each target. A piece is at most 60 seconds long, has a seed of its own and adds a
# line to BUILD/fuzz-results/COMMIT.tsv when it ends, so that an interrupted run goes on where it was
# and counts nothing twice. New inputs are kept in BUILD/fuzz-corpus/TARGET, findings in
# BUILD/fuzz-results/findings; the exit status is 1 when this call found something.
#
# CLG_FUZZ_SEED sets the first seed (default: the time), CLG_FUZZ_BUILT=1 skips the build,
# CLG_FUZZ_GO_ON=1 goes on after a finding, CLG_FUZZ_RESULTS is another folder for the results and,
# in its corpus/, for new inputs, CLG_FUZZ_NICE another priority than 19.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
[ $# -ge 2 ] || {
  sed -n '4,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
# shellcheck source=tests/support/pieces.bash
source tests/support/pieces.bash
wanted=$1
seconds=$2
build=$(realpath -m -- "${3:-build-fuzz}")
piece_s=60

targets=()
for source in tests/fuzz/libfuzzer/fuzz_*.c; do
  name=${source##*/fuzz_}
  targets+=("${name%.c}")
done
if [ "$wanted" != all ]; then
  [ -f "tests/fuzz/libfuzzer/fuzz_$wanted.c" ] || {
    echo "run.sh: no target '$wanted'; there are: ${targets[*]}" >&2
    exit 2
  }
  targets=("$wanted")
fi

if [ "${CLG_FUZZ_BUILT:-0}" != 1 ]; then
  CC=${CC:-clang} cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG="-O1 -g" -DCLG_FUZZ=ON -DCLG_SANITIZE=ON -DCLG_BUILD_TESTS=ON \
    -DCLG_BUILD_EXAMPLES=OFF --log-level=WARNING >/dev/null
  cmake --build "$build" --target fuzz_all clgraph-compile >"$build/fuzz-build.log" 2>&1 || {
    tail -n 40 "$build/fuzz-build.log" >&2
    exit 1
  }
fi

results=${CLG_FUZZ_RESULTS:-$build/fuzz-results}
pieces_open "$root" "$results" target seed seconds cpu_s executions edges findings ran kernels
corpora=${CLG_FUZZ_RESULTS:+$results/corpus}
corpora=${corpora:-$build/fuzz-corpus}
mkdir -p "$results/findings"

dictionary=$build/fuzz-onnx.dict
"$build/tests/fuzz/make_corpus" --dictionary "$dictionary.$$"
mv "$dictionary.$$" "$dictionary" # others may read it
export CLG_CACHE_DIR=$build/fuzz-cache CLG_COMPILE_HELPER=$build/clgraph-compile
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$root/tools/sanitizer/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
pocl=/etc/OpenCL/vendors/pocl.icd
if [ -z "${OCL_ICD_VENDORS:-}" ] && [ -f "$pocl" ]; then export OCL_ICD_VENDORS=$pocl; fi

# Runs a target for so many seconds and adds the piece's line. Returns 1 when it found something.
piece() { # TARGET SEED SECONDS
  local target=$1 seed=$2 limit=$3 status=0
  local log=$results/$target-$seed.log corpus=$corpora/$target
  local options=(-seed="$seed" -max_total_time="$limit" -timeout=25 -rss_limit_mb=3072
    -max_len=4096 -print_final_stats=1 -artifact_prefix="$results/findings/$target-")
  case $target in
    onnx | run) options+=(-dict="$dictionary") ;;
  esac
  [ ! -f "tests/fuzz/dictionaries/$target.dict" ] ||
    options+=(-dict="tests/fuzz/dictionaries/$target.dict")
  mkdir -p "$corpus"
  pieces_run "$log" nice -n "${CLG_FUZZ_NICE:-19}" "$build/tests/fuzz/$target" "${options[@]}" \
    "$corpus" "tests/fuzz/corpus/$target" || status=1
  local executed edges ran
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(grep -oE ' cov: [0-9]+' "$log" | tail -n 1 | tr -dc 0-9)
  # "run: 11 models loaded, 9 run, 8 of them launched a kernel"
  ran=$(sed -nE 's/^run: .* ([0-9]+) run, ([0-9]+) of .*/\1 \2/p' "$log" | tail -n 1)
  ran=${ran:-0 0}
  if [ "$target" = run ] && [ "${ran##* }" -eq 0 ]; then
    echo "run: no kernel was launched" | tee -a "$log" >&2
    status=1
  fi
  # shellcheck disable=SC2086 # two columns
  pieces_add "$target" "$seed" "$pieces_s" "$pieces_cpu_s" "${executed:-0}" "${edges:-0}" "$status" $ran
  [ "$status" -eq 0 ] || grep -m 3 -E 'ERROR|SUMMARY|runtime error|does not hold|artifact' "$log" >&2
  return "$status"
}

found=0
seed=${CLG_FUZZ_SEED:-$(date +%s)}
for target in "${targets[@]}"; do
  while left=$((seconds - $(pieces_sum 3 "$target"))) && [ "$left" -gt 0 ]; do
    failed=0
    piece "$target" "$seed" $((left < piece_s ? left : piece_s)) || failed=1
    seed=$((seed + 1))
    # A target that fails ends early each time: the next one is more use.
    [ "$failed" -eq 0 ] || { found=1 && [ "${CLG_FUZZ_GO_ON:-0}" = 1 ] && break; } || break 2
  done
done

echo "commit $(basename "$pieces" .tsv)"
awk -F'\t' 'NR > 1 {
    if (!($1 in n)) order[++count] = $1
    n[$1]++; s[$1] += $3; cpu[$1] += $4; e[$1] += $5; f[$1] += $7; r[$1] += $8; k[$1] += $9
    if ($6 > edges[$1]) edges[$1] = $6
  }
  END {
    printf "%-9s %6s %8s %8s %11s %7s %9s %9s %9s\n", "target", "pieces", "seconds", "CPU s",
      "executions", "edges", "findings", "ran", "kernels"
    for (i = 1; i <= count; i++) { t = order[i]
      printf "%-9s %6d %8d %8.0f %11d %7d %9d %9s %9s\n", t, n[t], s[t], cpu[t], e[t], edges[t],
        f[t], t == "run" ? r[t] : "-", t == "run" ? k[t] : "-" }
  }' "$pieces"
exit $found
