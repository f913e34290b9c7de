#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fresh_processes.sh [MODEL...]: the first run of a process is right, and gives the same bits in
# every process. Each model, a folder with model.onnx and test_data_set_0, is verified and run by
# CLG_FRESH_PROCESSES new processes each (3 when not said); a test that repeats a run in one process
# does not see what the driver does late. Without arguments the ten smallest of CLG_TEST_MODELS.
# CLG_DEVICE says which device:
#
#   CLG_FRESH_PROCESSES=20 CLG_DEVICE=gpu CLTOOL=build/cltool tests/conformance/fresh_processes.sh
#   ../shared/models/*/
set -u
n=${CLG_FRESH_PROCESSES:-3}
models=("$@")
if [ $# -eq 0 ]; then
  mapfile -t models < <(find "${CLG_TEST_MODELS:-/nowhere}" -mindepth 2 -maxdepth 2 -name model.onnx -printf '%s %h\n' \
    2>/dev/null | sort -n | head -n 10 | cut -d ' ' -f 2-)
fi
if [ ${#models[@]} -eq 0 ]; then
  echo "there is not a folder of models: CLG_TEST_MODELS says where"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CLG_CACHE_DIR=${CLG_CACHE_DIR:-$work/cache}
status=0

bits() { # MODEL: a hash of all outputs
  local inputs=() names i
  mapfile -t names < <("$CLTOOL" inspect --json "$1/model.onnx" |
    sed -n '/^  "inputs"/,/^  \]/s/^      "name": "\(.*\)",$/\1/p')
  for i in "${!names[@]}"; do inputs+=(-i "${names[i]}=$1/test_data_set_0/input_$i.pb"); done
  rm -rf "$work/out"
  "$CLTOOL" run -q "$1/model.onnx" "${inputs[@]}" -o "$work/out" >/dev/null || return 1
  (cd "$work/out" && sha256sum -- *) | sha256sum
}

for model in "${models[@]}"; do
  model=${model%/}
  tolerance=()
  [ -f "$model/../tolerance.json" ] && tolerance=(--tolerance "$model/../tolerance.json")
  wrong=0
  : >"$work/bits"
  for ((i = 0; i < n; i++)); do
    "$CLTOOL" verify -q "${tolerance[@]}" "$model" >"$work/err" || wrong=$((wrong + 1))
    bits "$model" >>"$work/bits" || wrong=$((wrong + 1))
  done
  kinds=$(sort -u "$work/bits" | wc -l)
  echo "$(basename "$model"): $((2 * n)) processes, $wrong wrong, $kinds different results"
  if [ "$wrong" -ne 0 ] || [ "$kinds" -ne 1 ]; then
    grep '^FAIL' "$work/err"
    status=1
  fi
done
exit "$status"
