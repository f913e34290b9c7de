#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the version of the source, MAJOR.MINOR.PATCH, which is in include/clgraph/base.h alone; with
# --abi that of the SONAME: MAJOR.MINOR before 1.0, then MAJOR.
set -euo pipefail
header=$(dirname -- "${BASH_SOURCE[0]}")/../include/clgraph/base.h
number() { awk -v name="CLG_VERSION_$1" '$1 == "#define" && $2 == name { print $3 }' "$header"; }
major=$(number MAJOR)
minor=$(number MINOR)
case ${1:-} in
  '') echo "$major.$minor.$(number PATCH)" ;;
  --abi) [ "$major" != 0 ] && echo "$major" || echo "$major.$minor" ;;
  *)
    echo "usage: tools/version.sh [--abi]" >&2
    exit 2
    ;;
esac
