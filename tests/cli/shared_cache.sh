#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Eight concurrent processes on one empty cache, CLG_TEST_ROUNDS times (4), in every other round with
# some of them killed: tests/bench/cache_loop.sh.
# ctest: timeout 900
set -u
bash "${CLG_SOURCE_DIR:?}/tests/bench/cache_loop.sh" "${CLG_TEST_ROUNDS:-4}" "${WORK:?}/rounds"
