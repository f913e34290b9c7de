#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target for $CLG_FUZZ_SECONDS (default 5) in the build folder $CLG_BUILD_DIR, two at
# a time, from the corpora of the tree and a new seed, which is printed. Results are kept only in
# $WORK.
set -euo pipefail
: "${WORK:?a folder of the test}" "${CLG_SOURCE_DIR:?}" "${CLG_BUILD_DIR:?}"
export CLG_FUZZ_BUILT=1 CLG_FUZZ_GO_ON=1 CLG_FUZZ_SEED=${CLG_FUZZ_SEED:-$(date +%s)}
echo "first seed: CLG_FUZZ_SEED=$CLG_FUZZ_SEED"
fuzz() { # TARGET NUMBER
  local code=0 out=$WORK/$1.out
  mkdir -p "$WORK/$1"
  CLG_FUZZ_RESULTS=$WORK/$1 CLG_FUZZ_SEED=$((CLG_FUZZ_SEED + $2)) \
    bash "$CLG_SOURCE_DIR/tests/fuzz/run.sh" "$1" "${CLG_FUZZ_SECONDS:-5}" "$CLG_BUILD_DIR" >"$out" 2>&1 || code=$?
  cat "$out"
  return "$code"
}
export -f fuzz
n=0
for source in "$CLG_SOURCE_DIR"/tests/fuzz/libfuzzer/fuzz_*.c; do
  target=${source##*/fuzz_}
  echo "${target%.c} $n"
  n=$((n + 1))
done | xargs -P 2 -L 1 bash -c 'fuzz "$@"' fuzz || {
  # The folder is removed: keep what failed beside the build.
  mkdir -p "$CLG_BUILD_DIR/fuzz-findings"
  find "$WORK" -type f \( -path '*/findings/*' -o -name '*.log' \) -exec cp {} "$CLG_BUILD_DIR/fuzz-findings/" \;
  exit 1
}
