#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target for $CLG_FUZZ_SECONDS (default 5) in the build folder $CLG_BUILD_DIR, from
# the corpora of the tree and a new seed, which is printed. Results are kept only in $WORK.
set -euo pipefail
export CLG_FUZZ_BUILT=1 CLG_FUZZ_GO_ON=1 CLG_FUZZ_RESULTS=$WORK CLG_FUZZ_SEED=${CLG_FUZZ_SEED:-$(date +%s)}
echo "first seed: CLG_FUZZ_SEED=$CLG_FUZZ_SEED"
bash "${CLG_SOURCE_DIR:?}/tests/fuzz/run.sh" all "${CLG_FUZZ_SECONDS:-5}" "${CLG_BUILD_DIR:?}" || {
  # The folder is removed: keep what failed beside the build.
  mkdir -p "$CLG_BUILD_DIR/fuzz-findings"
  find "$WORK/findings" "$WORK" -maxdepth 1 -type f -exec cp {} "$CLG_BUILD_DIR/fuzz-findings/" \;
  exit 1
}
