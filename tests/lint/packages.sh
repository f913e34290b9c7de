#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The files of debian/ agree with the source: the version, the name of the library's package, and
# the list of symbols, which is what the library exports. To write the list again:
#
#   tests/lint/packages.sh --write
#
# Symbols that are new get the source's version.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

version=$(tools/version.sh)
abi=$(tools/version.sh --abi)
package=libclgraph$abi
symbols=debian/$package.symbols
library=${CLG_BUILD_DIR:-build}/libclgraph.so
status=0
complain() {
  echo "$1"
  status=1
}

changelog=$(sed -nE '1s/.*\((.*)-[^-]*\).*/\1/p' debian/changelog)
[ "$changelog" = "$version" ] || complain "debian/changelog has version $changelog, include/clgraph/base.h $version"
grep -qx "Package: $package" debian/control || complain "debian/control has no package $package"
[ -f "$symbols" ] || complain "there is no $symbols"
[ -f "$library" ] || {
  echo "$library is not built: its symbols were not compared"
  exit 77
}

# As dpkg-gensymbols writes it, with the versions of the old list.
fresh() {
  printf 'libclgraph.so.%s %s #MINVER#\n* Build-Depends-Package: libclgraph-dev\n' "$abi" "$package"
  {
    nm -D --defined-only "$library" | sed -nE 's/^[0-9a-f]+ [A-Z] (.*)@@(.*)$/ \1@\2/p'
    echo " CLGRAPH_$abi@CLGRAPH_$abi"
  } | LC_ALL=C sort | awk -v version="$version" '
    old { if (/^ /) since[$1] = $2; next }
    { print " " $1 " " ($1 in since ? since[$1] : version) }' old=1 <(cat "$symbols" 2>/dev/null) old=0 -
}
fresh=$(fresh)
if [ "${1:-}" = --write ]; then
  echo "$fresh" >"$symbols"
  exit
fi
[ ! -f "$symbols" ] || diff "$symbols" <(echo "$fresh") ||
  complain "$symbols is not what $library exports; tests/lint/packages.sh --write writes it again"
exit $status
