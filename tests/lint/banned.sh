#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Calls that only src/base may make, in src and onnxruntime: memory goes through base/memory.h, text through base/strbuf.h,
# and the library never exits, aborts, prints or reads the environment elsewhere. src/helper is a
# program, whose processes are its own to end.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

banned='malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign|_?exit|abort|v?f?printf'
banned+='|puts|putchar|perror|getenv|setenv|strcpy|strcat|v?sprintf|atoi|atol|atof'

# Comments and string literals are blanked first; names such as `model_free` and members such as
# `allocator->free` are others' business.
found=$(find src onnxruntime -path src/base -prune -o -name '*.[ch]' -print | sort | while IFS= read -r file; do
  awk -v file="$file" '
    {
      text = $0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", text)
      if (inside) { if (!sub(/^.*\*\//, "", text)) next; inside = 0 }
      gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", text)
      sub(/\/\/.*/, "", text)
      if (sub(/\/\*.*/, "", text)) inside = 1
      print file ":" NR ": " text
    }' "$file"
done | grep -E "^[^:]+:[0-9]+: (.*[^A-Za-z0-9_.>])?($banned)[[:space:]]*\(" |
  grep -vE '^src/helper/[^:]+:[0-9]+: .*[^A-Za-z0-9]_?exit *\(' || true)

if [ -n "$found" ]; then
  printf '%s\n' "$found" "These calls belong in src/base."
  exit 1
fi
