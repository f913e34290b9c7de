# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts of this folder: $work, a folder that goes with the script; all, the folders of
# ONNX's cases; left_out, the names of those with outdated outputs (outdated_data.txt), which are
# not among them; $status, what to exit with. Without the cases the test is skipped (exit 77).
# shellcheck shell=bash
# See decision 39.
data=${CLG_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$data" ]; then
  echo "$data is not there: ONNX's test cases were not run"
  exit 77
fi
outputs_hash() { # FOLDER
  cat "$1"/test_data_set_*/output_*.pb 2>/dev/null | sha256sum | cut -c 1-16
}
all=()
left_out=()
declare -A outdated=()
while read -r hash name; do
  outdated[$name]+=" $hash"
done < <(grep -v '^#' "$CLG_SOURCE_DIR/tests/conformance/outdated_data.txt")
while read -r folder; do
  name=${folder##*/}
  if [ -n "${outdated[$name]:-}" ] && [[ ${outdated[$name]} == *" $(LC_ALL=C outputs_hash "$folder")"* ]]; then
    left_out+=("$name")
  else
    all+=("$folder")
  fi
done < <(find "$data" -name model.onnx -printf '%h\n' | LC_ALL=C sort)

# cases: each N-th of all; all of them with CLG_TEST_SHARE=all.
take_every() { # N
  local i every=$1
  cases=()
  [ "${CLG_TEST_SHARE:-}" = all ] && every=1
  for ((i = every - 1; i < ${#all[@]}; i += every)); do cases+=("${all[i]}"); done
}

# Whether this run takes row N of a list: every row, unless CLG_TEST_SHARE is I/N; then every other
# one, the rest at the next I.
takes_row() { # N
  [[ ${CLG_TEST_SHARE:-all} != */* ]] || [ $((($1 + ${CLG_TEST_SHARE%/*}) % 2)) = 0 ]
}

digits=$CLG_SOURCE_DIR/examples/digits/digits.onnx
status=0

# What the digits give on random numbers by default: what they must give with all other options.
keep_digits() {
  "$CLTOOL" run -q "$digits" --fill random:1 -o "$work/expected" >/dev/null || exit 1
}

# The digits and `cases` with these options of cltool. Where anything is wrong, says so, and $status
# becomes 1.
check_with() { # WHAT OPTION...
  local what=$1 name
  shift
  name=$(basename "$work"/expected/*.npy .npy)
  "$CLTOOL" run -q "$digits" --fill random:1 "$@" --expect "$name=$work/expected/$name.npy" --rtol 1e-3 >/dev/null ||
    { echo "digits, $what: another result"; status=1; }
  verify_with "$what" "$@" "${cases[@]}"
}

# `cltool verify`, with the tolerances of the cases where the data has them (newest_onnx.py):
# $summary is what it says in the end; what it says before that is in $work/out.
verify_with() { # WHAT OPTION-OR-FOLDER...
  local what=$1 tolerance=()
  shift
  [ ! -f "$data/tolerance.json" ] || tolerance=(--tolerance "$data/tolerance.json")
  summary=$("$CLTOOL" verify -q --list-skipped "${tolerance[@]}" "$@" | tee "$work/out" | tail -n 1)
  echo "$what: $summary"
  if ! grep -qE '^[1-9][0-9]* passed, 0 failed' <<<"$summary"; then
    grep '^FAIL' "$work/out"
    status=1
  fi
}
