#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Python package with the library of this build (python/test.sh), in a virtual environment that
# is kept in the build folder. Skipped where no virtual environment can be made.
set -euo pipefail
: "${CLG_BUILD_DIR:?the build folder}" "${CLG_SOURCE_DIR:?the source tree}"
if grep -qE '^CLG_SANITIZE:[A-Z]*=(ON|on|1|thread)' "$CLG_BUILD_DIR/CMakeCache.txt"; then
  echo "the library of a build with sanitizers cannot be loaded into Python: not run"
  exit 77
fi
PYTHON=${PYTHON:-/usr/bin/python3} exec "$CLG_SOURCE_DIR/python/test.sh" --build "$CLG_BUILD_DIR"
