#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh FOLDER HOW: `cltool verify` of a folder of models by one class of kernels, simd or simt,
# with the tolerances it comes with, or in fp16, with those of fp16.json. Each model that has a
# tolerance in the folder must pass: one that has become unsupported is not a skip. Exit code 77
# when the folder is not there.
set -u
: "${CLTOOL:?the path of cltool}"
folder=${1:?a folder of models} how=${2:?simd, simt or fp16}
if [ ! -f "$folder/tolerance.json" ]; then
  echo "skipped: there are no models in $folder"
  exit 77
fi
names=$(sed -nE 's/^ *"(.+)": \[.*/\1/p' "$folder/tolerance.json" | grep -vx default)
if [ -z "$names" ]; then
  echo "$folder/tolerance.json names no model"
  exit 1
fi
options=(--kernels "$how" --tolerance "$folder/tolerance.json")
[ "$how" != fp16 ] || options=(--precision fp16 --tolerance "$(dirname -- "${BASH_SOURCE[0]}")/fp16.json")
"$CLTOOL" verify "${options[@]}" --list-skipped \
  --expect-pass <(printf '%s\n' "$names") "$folder"
