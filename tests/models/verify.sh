#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh FOLDER CLASS: `cltool verify` of a folder of models with the tolerances it comes with, by one class of kernels.
# Exit code 77 when the folder is not there.
set -u
: "${CLTOOL:?the path of cltool}"
folder=${1:?a folder of models} kernels=${2:?wide or simt}
if [ ! -f "$folder/tolerance.json" ]; then
  echo "skipped: there are no models in $folder"
  exit 77
fi
exec "$CLTOOL" verify --kernels "$kernels" --list-skipped --tolerance "$folder/tolerance.json" "$folder"
