#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout 1800
#
# A share of the tests as they run on other processors (tools/cpu-variants.sh, which takes more of
# them on demand).
exec bash "$CLG_SOURCE_DIR/tools/cpu-variants.sh" --build "$CLG_BUILD_DIR"
