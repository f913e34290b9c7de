#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1200
#
# Every kernel through one target of each GPU vendor's compiler (tools/portability.sh): no errors,
# no spills in kernels marked hot, local memory within bounds; instructions that NVIDIA has from
# sm_80 on (mark @ptx) for that. Vendors whose compiler is not installed are named and left out;
# without any, the test is skipped (exit 77). What compiled before is not compiled again, for any
# build folder of the user's.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

here=$(tools/portability.sh --targets)
chosen=()
for target in gfx1030 tgllp sm_70; do
  if grep -qx "$target" <<<"$here"; then
    chosen+=(--target "$target")
  else
    echo "no compiler for $target: tools/packages.sh install vendors"
  fi
done
if [ ${#chosen[@]} -eq 0 ]; then
  echo "no compiler of a GPU vendor is installed: kernels were not compiled"
  exit 77
fi
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/clgraph-portability
tools/portability.sh "${chosen[@]}" --cache "$cache"
if grep -qx sm_80 <<<"$here"; then
  mapfile -t files < <(grep -l '^// @ptx' cl/*/*.cl)
  tools/portability.sh --target sm_80 --cache "$cache" "${files[@]}"
fi
