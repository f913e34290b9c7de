#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lists what others wrote in the files that tools/portable.sh builds, with versions and licences:
#
#   tools/licenses.sh FOLDER          FOLDER: that of tools/portable.sh; prints a table
#   tools/licenses.sh FOLDER OUT      also copies the licences' texts to OUT/NAME.txt
#
# The texts are the copyright files of Debian's packages. A package of `tools/packages.sh list
# static` without a row in tools/dependencies.txt is an error, so that none is forgotten.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
place=${1:?licenses.sh FOLDER [OUT]}
out=${2:-}
[ -d "$place/sysroot" ] || {
  echo "licenses.sh: $place is no folder of tools/portable.sh" >&2
  exit 2
}

parts=$(grep -v '^#' "$root/tools/dependencies.txt")

while read -r package; do
  grep -qF "|$package|" <<<"$parts" || {
    echo "licenses.sh: $package has no row in tools/dependencies.txt" >&2
    exit 1
  }
done < <("$root/tools/packages.sh" --suite bookworm list static)

row='%-16s %-22s %-18s %s\n'
# shellcheck disable=SC2059 # one format for all rows
printf "$row" name version licence 'what of it'
[ -z "$out" ] || mkdir -p "$out"
while IFS='|' read -r name package license _ part; do
  case $name in
    onnxruntime)
      text=$place/sysroot/usr/include/clgraph-onnxruntime/copyright
      header=$place/sysroot/usr/include/clgraph-onnxruntime/onnxruntime/onnxruntime_c_api.h
      if [ ! -f "$header" ]; then
        text=$place/sysroot/usr/share/doc/libonnxruntime-dev/copyright
        header=$place/sysroot/usr/include/onnxruntime/onnxruntime_c_api.h
      fi
      [ -f "$header" ] || continue # built without the provider
      version="API $(awk '$1 == "#define" && $2 == "ORT_API_VERSION" { print $3 }' "$header")"
      ;;
    zig)
      text=$(echo "$place"/venv/lib/python*/site-packages/ziglang/LICENSE)
      version=$("$place/venv/bin/python" -m ziglang version)
      ;;
    *)
      compgen -G "$place/debs/${package}_*.deb" >/dev/null || continue # nothing of it is in the files
      text=$place/sysroot/usr/share/doc/$package/copyright
      version=$(dpkg-deb -f "$place"/debs/"$package"_*.deb Version)
      ;;
  esac
  [ -s "$text" ] || {
    echo "licenses.sh: $name: no copyright file in $place" >&2
    exit 1
  }
  # shellcheck disable=SC2059
  printf "$row" "$name" "$version" "$license" "$part"
  [ -z "$out" ] || cp "$text" "$out/$name.txt"
done <<<"$parts"
