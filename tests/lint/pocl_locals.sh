#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Local arrays that PoCL made global. PoCL 3.1 gives each of its threads its own copy of a kernel's
# local arrays, but not of those that it fails to recognise, as after two folds in a row over one
# array; they stay one array for all threads, and results are wrong now and then. Such an array is a
# symbol <kernel>.<array> in the data of the kernel's library: looked for in what PoCL compiled of
# this tree's kernels since they were last changed, by the tests that ran before. Where there is
# nothing of that, the test is skipped (exit 77).
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

cache=${POCL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pocl}
if [ ! -d "$cache" ] || ! command -v nm >/dev/null; then
  echo "nothing to look at: PoCL compiled nothing here, or there is no nm"
  exit 77
fi
newest=$(find cl -type f -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
kernels=$(grep -rhoE '__kernel void [A-Za-z0-9_]+' cl --include='*.cl' | awk '{print $3}' | sort -u)
# nm fails for a file that another process has just removed.
symbols=$(find "$cache" -name '*.so' -newer "$newest" -print0 |
  xargs -0 -r -n 100 nm --defined-only 2>/dev/null || true)
if [ -z "$symbols" ]; then
  echo "nothing to look at: PoCL compiled nothing since $newest was changed"
  exit 77
fi
found=$(awk '$2 ~ /^[bBdD]$/ && $3 ~ /[.]/ {print $3}' <<<"$symbols" | sort -u |
  while IFS= read -r symbol; do
    if grep -qxF "${symbol%%.*}" <<<"$kernels"; then echo "$symbol"; fi
  done)
if [ -n "$found" ]; then
  echo "local arrays that all threads of PoCL share:"
  echo "$found"
  exit 1
fi
