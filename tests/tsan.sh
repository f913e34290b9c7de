#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/tsan.sh [BUILD]: builds the tests with ThreadSanitizer into BUILD (default build-tsan), runs
# those that use threads, and shows that it finds a planted race. Minutes. CLG_TEST_ROUNDS and
# CLG_TEST_SEED are those of api.many_threads and faults.soak.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"
build=$(realpath -m -- "${1:-build-tsan}")
tests=(api.many_threads api.threads api.spin_wait api.train_reader api.cancel api.stream api.multi
  api.multi_lost api.layers api.layers_lost unit.process unit.disk_cache faults.soak)
targets=()
for name in "${tests[@]}"; do targets+=("test_${name/./_}"); done

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g" \
  -DCLG_SANITIZE=thread -DCLG_BUILD_TESTS=ON --log-level=WARNING >/dev/null
cmake --build "$build" --target clgraph-compile layer_opencl_faults \
  layer_opencl_lost "${targets[@]}"
pocl=/etc/OpenCL/vendors/pocl.icd
if [ -z "${OCL_ICD_VENDORS:-}" ] && [ -f "$pocl" ]; then export OCL_ICD_VENDORS=$pocl; fi

status=0
pattern=$(IFS='|' && echo "${tests[*]//./\\.}")
ctest --test-dir "$build" --output-on-failure --no-tests=error -R "^($pattern)\$" || status=1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export CLG_CACHE_DIR=$build/test-cache
export TSAN_OPTIONS=suppressions=$root/tools/sanitizer/tsan.supp
if CLG_TEST_PLANT=race CLG_TEST_ROUNDS=1 "$build/tests/api/test_many_threads" >"$log" 2>&1; then
  echo "the planted race was not found"
  status=1
elif grep -qE 'data race .* in value_(read|write)' "$log"; then
  echo "the planted race was found"
else
  cat "$log"
  echo "the planted race: another failure"
  status=1
fi
exit $status
