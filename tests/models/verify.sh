#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh FOLDER CLASS: `cltool verify` of a folder of models with the tolerances it comes with, by one class of kernels.
# Each model that has a tolerance must pass: one that has become unsupported is no skip. Exit code 77 when the folder is
# not there.
set -u
: "${CLTOOL:?the path of cltool}"
folder=${1:?a folder of models} kernels=${2:?wide or simt}
if [ ! -f "$folder/tolerance.json" ]; then
  echo "skipped: there are no models in $folder"
  exit 77
fi
names=$(sed -nE 's/^ *"(.+)": \[.*/\1/p' "$folder/tolerance.json" | grep -vx default)
if [ -z "$names" ]; then
  echo "$folder/tolerance.json names no model"
  exit 1
fi
"$CLTOOL" verify --kernels "$kernels" --list-skipped --tolerance "$folder/tolerance.json" \
  --expect-pass <(printf '%s\n' "$names") "$folder"
