#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks every cl/*/*.cl with clang as OpenCL C 1.2, warnings as errors, once for each row of
# parameters at its head (tools/kernel_variants.sh), for NVIDIA where a row is for that vendor only;
# rows for some of AMD's targets are left to portability.sh. A kernel file without a row fails, and
# so does a kernel that is in none of its file's programs. The same once more with the declarations
# of cl/common/builtins.clh in place of the compiler's, as for drivers whose own take long
# (src/ocl/program_build.c); probes and rows of one vendor are for others. Files with the mark
# `// @split` also as programs for parts of launches (cl/lowering/launch_part.clh); they may not use
# functions that such programs do not replace, nor atomics (decision 43), unless `// @claims` says
# that work-groups claim their work by them (decision 91). Without clang the test is skipped (exit
# 77).
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
if grep -ln '^// @split' cl/*/*.clh; then
  echo "only kernel files have the mark @split"
  status=1
fi
# The library takes one kernel out of a file by its first column (src/ocl/program_text.c).
if grep -nE '__kernel' cl/*/*.cl | grep -vE '^[^:]+:[0-9]+:(__kernel void [a-z_0-9]+\(|//)'; then
  echo "a kernel begins with '__kernel void NAME(' at the first column"
  status=1
fi
tools/kernel_variants.sh "$work" >"$work/variants" || status=1
kernels_in() { # the names of kernels in a text
  sed -nE 's/^__kernel void ([a-z_0-9]+)\(.*/\1/p'
}
# clang 14 has vload_half for NVIDIA only together with half arithmetic.
while IFS=$'\t' read -r program file row only; do
  case $only in
    *gfx*) continue ;;
    nvidia) target=(nvptx64--nvidiacl -Xclang -cl-ext=+cl_khr_fp16) ;;
    *) target=(spir64-unknown-unknown) ;;
  esac
  n=$((n + 1))
  if ! "$clang" -x cl -cl-std=CL1.2 -target "${target[@]}" -fsyntax-only -Wall -Wextra \
    -Wundef -Werror -Wno-unused -Wno-unused-parameter -Icl "$work/$program.cl"; then
    echo "$file: failed with $row"
    status=1
  fi
  if [[ $only != nvidia && $file != cl/device/probe.cl ]] &&
    ! cat cl/common/builtins.clh "$work/$program.cl" | "$clang" -x cl -cl-std=CL1.2 -target "${target[@]}" -cl-no-stdinc \
      -include opencl-c-base.h -fsyntax-only -Werror -Wno-unused-value -DBASELINE -Icl -; then
    echo "$file: failed with BASELINE, the declarations of cl/common/builtins.clh and $row"
    status=1
  fi
  if grep -qx '// @split' "$file"; then
    printf '%s\n' '#define P_PART_DIM 1' '#define P_PART_OTHER 0' |
      cat - cl/lowering/launch_part.clh "$work/$program.cl" >"$work/part.cl"
    if ! "$clang" -x cl -cl-std=CL1.2 -target "${target[@]}" -fsyntax-only -Wall -Wextra -Wundef \
      -Werror -Wno-unused -Wno-unused-parameter -Icl "$work/part.cl"; then
      echo "$file: failed for parts of launches with $row"
      status=1
    fi
    differs='get_(work_dim|global_offset|global_linear_id|enqueued)'
    grep -qx '// @claims' "$file" || differs+='|\batom(ic)?_'
    if "$clang" -x cl -cl-std=CL1.2 -target "${target[@]}" -E -P -Icl "$work/$program.cl" | grep -E "$differs"; then
      echo "$file: is marked @split, but a part of a launch would differ with $row"
      status=1
    fi
  fi
  "$clang" -x cl -cl-std=CL1.2 -target "${target[@]}" -E -P -Icl "$work/$program.cl" 2>/dev/null | kernels_in >>"$work/seen"
done <"$work/variants"
while read -r kernel; do
  echo "the kernel $kernel is in no program of a row"
  status=1
done < <(cat cl/*/*.cl | kernels_in | sort -u | comm -23 - <(sort -u "$work/seen"))
echo "$n kernel variants checked"
exit $status
