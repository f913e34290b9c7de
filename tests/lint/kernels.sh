#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks every cl/*.cl with clang as OpenCL C 1.2, warnings as errors, once for each line
#   // @variant P_A=1 P_B=4
# at its head: a legal row of parameters, given as the prelude that the library would generate.
# A kernel file without such a line fails. Without clang the test is skipped (exit 77).
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

clang=
for candidate in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
  if command -v "$candidate" >/dev/null; then
    clang=$candidate
    break
  fi
done
if [ -z "$clang" ]; then
  echo "no clang found: kernels were not checked"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
n=0
for file in cl/*.cl; do
  [ -e "$file" ] || continue
  n_variants=0
  # The library takes one kernel out of a file by its first column (src/ocl/program_text.c).
  if grep -nE '__kernel' "$file" | grep -vE '^[0-9]+:(__kernel void [a-z_0-9]+\(|//)'; then
    echo "$file: a kernel begins with '__kernel void NAME(' at the first column"
    status=1
  fi
  while IFS= read -r row; do
    n_variants=$((n_variants + 1))
    n=$((n + 1))
    {
      for pair in $row; do
        echo "#define ${pair%%=*} ${pair#*=}"
      done
      echo "#line 1 \"$file\""
      cat "$file"
    } >"$work/kernel.cl"
    if ! "$clang" -x cl -cl-std=CL1.2 -target spir64-unknown-unknown -fsyntax-only -Wall -Wextra \
      -Wundef -Werror -Wno-unused -Wno-unused-parameter -Icl "$work/kernel.cl"; then
      echo "$file: failed with $row"
      status=1
    fi
  done < <(sed -nE 's#^//[[:space:]]*@variant[[:space:]]*(.*)$#\1#p' "$file")
  if [ "$n_variants" -eq 0 ]; then
    echo "$file: no '// @variant P_...=...' line"
    status=1
  fi
done
echo "$n kernel variants checked"
exit $status
