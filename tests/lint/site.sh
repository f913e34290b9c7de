#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The documentation's site builds without a warning: every link and every heading that one names is
# there, and Doxygen and Sphinx read the comments of headers and of the Python package. Charts are as
# new as their figures. Without the packages of `tools/packages.sh list site` it is skipped.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"
build=${CLG_BUILD_DIR:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

modules='breathe, furo, myst_parser, numpy, sphinx_copybutton'
if ! command -v doxygen >/dev/null ||
  ! "${CLG_PYTHON:-/usr/bin/python3}" -c "import $modules" 2>/dev/null; then
  echo "Doxygen or parts of Sphinx are not installed: the site was not built"
  exit 77
fi
[ -x "$build/cltool" ] || {
  echo "no $build/cltool: build first"
  exit 77
}
python3 docs/figures/plots.py --check
bash docs/site/build.sh "$work/site" "$build"
# A page of each kind.
for page in index docs/getting-started reference/c/session reference/cltool/run reference/python; do
  [ -s "$work/site/$page.html" ] || {
    echo "there is no page $page"
    exit 1
  }
done
grep -q 'clg_session_create' "$work/site/reference/c/session.html"
