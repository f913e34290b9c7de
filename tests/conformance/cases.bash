# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts of this folder: $work, a folder that goes with the script; all, the folders of ONNX's cases. Without those
# the test is skipped (exit 77).
# shellcheck shell=bash
data=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$data" ]; then
  echo "$data is not there: ONNX's test cases were not run"
  exit 77
fi
mapfile -t all < <(find "$data" -name model.onnx -printf '%h\n' | sort)

# cases: each N-th of all; all of them with CLG_TEST_SHARE=all.
take_every() { # N
  local i every=$1
  cases=()
  [ "${CLG_TEST_SHARE:-}" = all ] && every=1
  for ((i = every - 1; i < ${#all[@]}; i += every)); do cases+=("${all[i]}"); done
}
