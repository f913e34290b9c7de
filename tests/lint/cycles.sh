#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# No files of src/ call each other in a cycle, but for the recursion of control flow: cycles.py
# finds them in the object files of a build.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"
exec python3 tests/lint/cycles.py "${CLG_BUILD_DIR:-build}"
