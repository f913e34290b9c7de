#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every source file names the licence in its first lines.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

status=0
while IFS= read -r file; do
  if ! head -n 5 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0'; then
    echo "$file: no SPDX line"
    status=1
  fi
done < <(find . \( -path './build*' -o -path ./.git \) -prune -o -type f \( -name '*.c' -o -name '*.h' \
  -o -name '*.cc' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cl' -o -name '*.clh' -o -name '*.sh' -o -name '*.py' \
  -o -name '*.cmake' -o -name '*.in' -o -name '*.map' -o -name CMakeLists.txt -o -name Makefile \
  -o -path './.ci/run' \) -print | sort)
exit $status
