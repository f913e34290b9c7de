#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The C++ interface calls every function of the C interface, and each of its functions exists in
# both kinds: with exceptions and with results (cpp_api.py).
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"
exec python3 tests/lint/cpp_api.py
