#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Every way that there is to compute a node gives right results, whichever estimates or measuring would choose: ONNX's
# cases of products and convolutions and the digits, with each way preferred where a node has it, in both classes of
# kernels. CLG_TEST_SHARE=all takes the models that make_models.py generated as well.
# shellcheck disable=SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
mapfile -t cases < <(printf '%s\n' "${all[@]}" | grep -E 'conv|gemm|matmul|einsum|linear')
digits=$CLG_SOURCE_DIR/examples/digits/digits.onnx
models=$(dirname "$CLTOOL")/tests/models/generated # of the fixture generated_models
folders=()
[ "${CLG_TEST_SHARE:-}" = all ] && [ -f "$models/tolerance.json" ] && folders=(--tolerance "$models/tolerance.json" "$models")

# Ways of the nodes of some models: what a profile names besides the way that was taken.
ways_of() { # CLASS
  local model others
  mapfile -d '' others < <(find "$models" -name model.onnx -print0 2>/dev/null)
  for model in "$digits" "${others[@]}"; do
    "$CLTOOL" profile "$model" --kernels "$1" --runs 1 -q --json
  done | python3 -c '
import json, sys
ways, decoder, text = set(), json.JSONDecoder(), sys.stdin.read()
while text.strip():
    document, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    ways.update(w for s in document["steps"] if len(s["ways"]) > 1 for w in s["ways"])
print(*sorted(ways))'
}

status=0
"$CLTOOL" run -q "$digits" --fill random:1 -o "$work/expected" >/dev/null || exit 1
expected=("$work"/expected/*.npy)
name=$(basename "${expected[0]}" .npy)
for class in wide simt; do
  ways=$(ways_of "$class")
  [ "$(wc -w <<<"$ways")" -ge 2 ] || { echo "$class: there is no node with a choice: '$ways'"; exit 1; }
  for way in $ways; do
    how=(--kernels "$class" --prefer "$way")
    "$CLTOOL" run -q "$digits" --fill random:1 "${how[@]}" --expect "$name=${expected[0]}" --rtol 1e-3 >/dev/null ||
      { echo "digits by $class $way: another result"; status=1; }
    summary=$("$CLTOOL" verify -q "${how[@]}" "${cases[@]}" | tee "$work/out" | tail -n 1)
    [ ${#folders[@]} -eq 0 ] ||
      summary+="; $("$CLTOOL" verify -q "${how[@]}" "${folders[@]}" | tee -a "$work/out" | tail -n 1)"
    echo "$class $way: $summary"
    if ! grep -qE '^[1-9][0-9]* passed, 0 failed' <<<"$summary" || grep -q '^FAIL' "$work/out"; then
      grep '^FAIL' "$work/out"
      status=1
    fi
  done
done
exit $status
