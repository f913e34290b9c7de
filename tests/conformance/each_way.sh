#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Every way that there is to compute a node gives right results, whichever estimates or measuring would choose: ONNX's
# cases of products and convolutions and the digits, with each way preferred where a node has it, in both classes of
# kernels. CLG_TEST_SHARE=all takes the models that make_models.py generated as well.
# shellcheck disable=SC2034,SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
mapfile -t cases < <(printf '%s\n' "${all[@]}" | grep -E 'conv|gemm|matmul|einsum|linear')
models=$(dirname "$CLTOOL")/tests/models/generated # of the fixture generated_models
folders=()
[ "${CLG_TEST_SHARE:-}" = all ] && [ -f "$models/tolerance.json" ] && folders=(--tolerance "$models/tolerance.json" "$models")

# Ways of the nodes of some models: what a profile names besides the way that was taken.
impls_of() { # CLASS
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

keep_digits
for class in simd simt; do
  ways=$(impls_of "$class")
  [ "$(wc -w <<<"$ways")" -ge 2 ] || { echo "$class: there is no node with a choice: '$ways'"; exit 1; }
  for way in $ways; do
    check_with "$class $way" --kernels "$class" --prefer "$way"
    [ ${#folders[@]} -eq 0 ] || verify_with "$class $way, models" --kernels "$class" --prefer "$way" "${folders[@]}"
  done
done
exit "$status"
