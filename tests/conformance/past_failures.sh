#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Models that failed once, in their smallest forms (tests/fuzz/differential/corpus.py), give the
# right results.
set -u
corpus=${CLG_SOURCE_DIR:-$(dirname "$0")/../..}/tests/fuzz/differential/corpus
expected=$(find "$corpus" -name model.onnx | wc -l)
summary=$("$CLTOOL" verify "$corpus" | tee /dev/stderr | tail -n 1)
[ "$expected" -gt 0 ] && [ "$summary" = "$expected passed, 0 failed, 0 skipped" ]
