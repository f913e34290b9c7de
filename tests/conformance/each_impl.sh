#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# Every implementation of a node gives right results, whichever estimates or measuring would choose:
# ONNX's cases of GEMMs and convolutions and the digits, with each one preferred where a node has
# it, in both classes of kernels. CLG_TEST_SHARE=all takes the models that make_models.py generated
# as well, I/N every other implementation.
# shellcheck disable=SC2034,SC2154 # variables of cases.bash
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/cases.bash"
mapfile -t cases < <(printf '%s\n' "${all[@]}" | grep -E 'conv|gemm|matmul|einsum|linear')
models=$(dirname "$CLTOOL")/tests/models/generated # of the fixture generated_models
folders=()
[ "${CLG_TEST_SHARE:-}" = all ] && [ -f "$models/tolerance.json" ] && folders=(--tolerance "$models/tolerance.json" "$models")

# Implementations of the nodes of some models: those that a profile names besides the one that ran.
impls_of() { # CLASS
  local model others
  mapfile -d '' others < <(find "$models" -name model.onnx -print0 2>/dev/null)
  for model in "$digits" "${others[@]}"; do
    "$CLTOOL" profile "$model" --kernels "$1" --runs 1 -q --json
  done | python3 -c '
import json, sys
impls, decoder, text = set(), json.JSONDecoder(), sys.stdin.read()
while text.strip():
    document, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    impls.update(w for s in document["steps"] if len(s["implementations"]) > 1 for w in s["implementations"])
print(*sorted(impls))'
}

keep_digits
n_impls=0
for class in simd simt; do
  impls=$(impls_of "$class")
  [ "$(wc -w <<<"$impls")" -ge 2 ] || { echo "$class: there is no node with a choice: '$impls'"; exit 1; }
  for impl in $impls; do
    n_impls=$((n_impls + 1))
    takes_row $n_impls || continue
    check_with "$class $impl" --kernels "$class" --prefer "$impl"
    [ ${#folders[@]} -eq 0 ] || verify_with "$class $impl, models" --kernels "$class" --prefer "$impl" "${folders[@]}"
  done
done
exit "$status"
