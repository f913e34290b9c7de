#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles library, cltool and the tests that need no device for Windows, and runs them under Wine:
#
#   tools/windows.sh [FOLDER]
#
# FOLDER, by default ~/.cache/clgraph-windows, keeps what is built: deps, build, wine; a second run
# builds what has changed. Where Wine shows an OpenCL device (it passes on those of this machine), a
# model is run as well. Ends with `N passed, N failed, N skipped`. Needs `tools/packages.sh install
# build windows`; exits with 77 without them.
set -uo pipefail
root=$(realpath -m -- "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/clgraph-windows}")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
tree=$PWD
target=x86_64-w64-mingw32
for command in "$target-gcc-posix" wine wineserver cmake ninja dpkg-source; do
  if ! command -v "$command" >/dev/null; then
    echo "windows.sh: no $command; run tools/packages.sh install build windows" >&2
    exit 77
  fi
done

build=$root/build
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
jobs=${CLG_JOBS:-$(nproc)}
# shellcheck source=/dev/null
. tools/checks.bash
finish() {
  checks_finish
  exit
}

# ---- building ------------------------------------------------------------------------------------

configure() {
  CLG_WINDOWS_DEPS="$root/deps" cmake -S . -B "$build" -G Ninja --log-level=WARNING \
    --toolchain cmake/toolchains/mingw-w64.cmake -DCLG_WERROR=ON -DCLG_BUILD_TESTS=ON -DCLG_BUILD_EXAMPLES=OFF
}
compile() { cmake --build "$build" --parallel "$jobs" --target clgraph cltool tests_unit; }

# Nothing but Windows and, for cltool, clgraph.dll has to be there; nothing but clg_* is to be seen.
imports() { # FILE ALLOWED
  "$target-objdump" -p "$1" | awk -v allowed="$2" '
    $1 == "DLL" && $2 == "Name:" && tolower($3) !~ ("^(" allowed ")\\.dll$") { print "needs " $3; bad = 1 }
    END { exit bad }'
}
alone() {
  imports "$build/clgraph.dll" 'advapi32|kernel32|msvcrt|user32' &&
    imports "$build/cltool.exe" 'advapi32|kernel32|msvcrt|user32|shell32|psapi|clgraph' &&
    imports "$build/clgraph-compile.exe" 'advapi32|kernel32|msvcrt|user32'
}
exports() {
  "$target-objdump" -p "$build/clgraph.dll" | awk '
    /^\[Ordinal\/Name Pointer\] Table/ { inside = 1; next }
    inside && NF == 0 { inside = 0 }
    inside && $NF !~ /^clg_[a-z0-9_]+$/ { print $NF; bad = 1 }
    inside { n++ }
    END { exit bad || n < 100 }'
}

check "libraries for Windows" tools/windows-deps.sh "$root/deps" || finish
check "configuring" configure || finish
check "compiling" compile || finish
check "needs Windows alone" alone
check "exports clg_* alone" exports

# ---- running -------------------------------------------------------------------------------------

# A Windows of our own. Its server is started here, in no terminal's group: programs that Wine
# starts beside a test would keep the test's output open, and wait for a terminal.
export WINEPREFIX=$root/wine WINEDEBUG=-all WINEARCH=win64 DISPLAY='' LC_ALL=C.UTF-8
unset CLG_CACHE_DIR CLG_DEVICE
stop_wine() {
  wineserver -k
  rm -rf "$log"
}
trap stop_wine EXIT
start_wine() {
  setsid wineserver -p
  setsid wine wineboot -i
}
cltool() { timeout 120 wine "$build/cltool.exe" "$@"; }
says() { # WORDS COMMAND...: it succeeds, and prints the words
  local words=$1 output
  shift
  if ! output=$("$@") || [[ $output != *"$words"* ]]; then
    printf 'no "%s" in:\n%s\n' "$words" "$output"
    return 1
  fi
}
fails() { # CODE WORDS COMMAND...: it fails so, and says the words on standard error
  local code=0 expected=$1 words=$2
  shift 2
  "$@" 2>"$log/words" || code=$?
  if [ "$code" -ne "$expected" ] || ! grep -qF -- "$words" "$log/words"; then
    printf 'exit %d, no "%s" in:\n' "$code" "$words"
    cat "$log/words"
    return 1
  fi
}
version() {
  local part text=
  for part in MAJOR MINOR PATCH; do
    text+=.$(awk -v name="CLG_VERSION_$part" '$2 == name { print $3 }' include/clgraph/base.h)
  done
  says "cltool ${text#.}" cltool --version
}
cache_path() { says 'AppData\Local\clgraph' cltool cache path; }

# Three scripts, one beyond 16 bits, and a blank; slashes of both kinds.
words='grüße 世界 😀'
names() {
  local place=$log/$words dot
  mkdir -p "$place" && cp examples/digits/digits.onnx "$place/modèle.onnx"
  says 'image' cltool inspect "$place/modèle.onnx" &&
    says 'image' cltool inspect "Z:${place//\//\\}\\modèle.onnx" --dot "$place/$words.dot" || return 1
  dot=$(cat "$place/$words.dot") && [[ $dot == digraph* ]] || return 1
  fails 4 "$words/absent.onnx" cltool inspect "$place/absent.onnx" &&
    says "$words" env "CLG_CACHE_DIR=Z:$place/cache" wine "$build/cltool.exe" cache path
}
no_opencl() { WINEDLLOVERRIDES=opencl= fails 3 OpenCL.dll cltool devices; }
unit_tests() { ctest --test-dir "$build" -L unit --parallel "$jobs" --output-on-failure --no-tests=error; }
device() {
  local code=0
  cltool devices || code=$?
  [ "$code" -ne 3 ] || {
    echo "Wine shows no OpenCL device"
    return 77
  }
  return "$code"
}
# Ends a long bench by the signal that Wine makes Ctrl-C of, once it has named its device: before
# that, Wine may not have started the program.
end_bench() {
  local said=$log/bench pid waited=0
  wine "$build/cltool.exe" bench examples/digits/digits.onnx --runs 100000000 >"$said" 2>&1 &
  pid=$!
  until grep -q device "$said" || [ $((waited++)) -ge 600 ]; do sleep 0.1; done
  sleep 2
  kill -INT "$pid"
  wait "$pid" || { local code=$? && cat "$said" >&2 && return "$code"; }
}
interrupted() {
  device || return
  fails 130 'interrupted' end_bench
}
model() {
  local place=$log/$words data=$tree/examples/digits
  device || return
  cltool run "$data/digits.onnx" -i "image=$data/heldout.npy" --expect "probabilities=$data/heldout_probabilities.npy" \
    --rtol 1e-3 --atol 1e-5 -o "$place/out" && [ -s "$place/out/probabilities.npy" ]
}

# A driver whose compiler dies ends the helper, and the program says so. Wine passes on what the
# layer of Linux does.
crashing_compiler() {
  local place=$log/crashing
  device || return
  mkdir -p "$place" && cc -shared -fPIC -Itests -D_DEFAULT_SOURCE \
    tests/layers/opencl_crashing.c -o "$place/layer.so" || return
  fails 5 "on kernel '" env OPENCL_LAYERS="$place/layer.so" CLG_CRASH_IN=kernel CLG_CRASH_AT=build \
    CLG_CRASH_BY=abort CLG_CRASH_LOG="$place/deaths" CLG_CACHE_DIR="Z:$place/cache" \
    wine "$build/cltool.exe" run examples/digits/digits.onnx -i image=examples/digits/heldout.npy -o "$place/out" &&
    grep -qF 'the compiler of driver' "$log/words" && [ -s "$place/deaths" ]
}

check "Wine starts" start_wine || finish
check "cltool --help" says 'usage: cltool COMMAND' cltool --help
check "cltool --version" version
check "cltool cache path" cache_path
check "names in UTF-8" names
check "no OpenCL" no_opencl
check "unit tests" unit_tests
check "a model on a device" model
check "a compiler that crashes" crashing_compiler
check "Ctrl-C" interrupted
finish
