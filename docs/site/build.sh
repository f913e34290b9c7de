#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   docs/site/build.sh [FOLDER [BUILD]]
#
# Builds the documentation's site into FOLDER (build/site): the pages of docs/, the C reference from
# the headers' comments, the command line from the --help of BUILD/cltool (build), and the Python
# reference (decision 77). Needs the packages of `tools/packages.sh install site`. A warning of Sphinx or Doxygen
# is an error. The last line is the path of the first page. CLG_PYTHON names another Python with
# Sphinx than Debian's.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(realpath -m -- "${1:-$root/build/site}")
build=$(realpath -m -- "${2:-$root/build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CLG_SOURCE_DIR=$root CLG_DOXYGEN_OUT=$work/doxygen CLG_DOXYGEN_XML=$work/doxygen/xml
mkdir -p "$work/doxygen"

doxygen "$root/docs/site/Doxyfile" 2>"$work/warnings"
if [ -s "$work/warnings" ]; then
  cat "$work/warnings" >&2
  exit 1
fi
python3 "$root/docs/site/stage.py" "$root" "$work/source" "$build/cltool"
export CLG_LIBRARY=$build/libclgraph.so # which the Python package opens when it is imported
"${CLG_PYTHON:-/usr/bin/python3}" -m sphinx -q -W --keep-going -j auto -c "$root/docs/site" -d "$work/doctrees" \
  "$work/source" "$out"
echo "$out/index.html"
