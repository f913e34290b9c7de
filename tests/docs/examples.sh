#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The code blocks of README.md and docs/*.md run and print what the pages show (examples.py).
# ctest: timeout 900
set -euo pipefail
: "${CLG_BUILD_DIR:?}" "${CLG_SOURCE_DIR:?}" "${WORK:?a folder of the test}"
if grep -qE '^CLG_SANITIZE:[A-Z]*=(ON|on|1|thread)' "$CLG_BUILD_DIR/CMakeCache.txt"; then
  echo "the library of a build with sanitizers cannot be loaded into Python: not run"
  exit 77
fi
# shellcheck source=/dev/null
. "$CLG_SOURCE_DIR/tests/support/python.bash"
python=$(python_with "markdown_it, numpy" "python3-markdown-it and python3-numpy") || exit 77
# Blocks that need ONNX Runtime run in the virtual environment of its tests, where there is one.
CLG_ORT_PYTHON=$(
  # shellcheck source=/dev/null
  source "$CLG_SOURCE_DIR/tests/ort/support.bash" >&2
  echo "$python"
) || true
export CLG_ORT_PYTHON
examples=("$python" "$CLG_SOURCE_DIR/tests/docs/examples.py" "$CLG_SOURCE_DIR" "$CLG_BUILD_DIR")
mkdir "$WORK/wrong" "$WORK/pages"
"${examples[@]}" "$WORK/wrong" tests/docs/wrong.md >wrong.log || true
if [ "$(tail -n 1 wrong.log)" != "12 failed" ]; then
  echo "not all 12 blocks of wrong.md failed:"
  cat wrong.log
  exit 1
fi
exec "${examples[@]}" "$WORK/pages"
