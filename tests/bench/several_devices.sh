#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/bench/several_devices.sh ONE SEVERAL MODEL OPTION...: what several devices add: rows a
# second of MODEL on the device ONE and on the list SEVERAL, in turns, so that both meet the same noise of
# the machine; and the ratio of the medians. OPTIONs are of cltool bench. ROUNDS: 5. CLTOOL: the
# program, default build/cltool.
#
#   tests/bench/several_devices.sh cpu cpu/0,cpu/1 resnet50.onnx --batch 16 --dim height=224 \
#     --dim width=224
set -euo pipefail
one=${1:?ONE} several=${2:?SEVERAL} model=${3:?MODEL}
shift 3
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cltool=${CLTOOL:-$root/build/cltool}

rows() { # DEVICE OPTION...
  local device=$1
  shift
  "$cltool" bench "$model" -d "$device" --json -q "$@" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["throughput_per_s"])'
}

first=() second=()
for ((i = 0; i < ${ROUNDS:-5}; i++)); do
  first+=("$(rows "$one" "$@")")
  second+=("$(rows "$several" "$@")")
done
python3 - "$one" "${first[*]}" "$several" "${second[*]}" <<'END'
import statistics
import sys

names, numbers = sys.argv[1::2], [[float(x) for x in a.split()] for a in sys.argv[2::2]]
middle = [statistics.median(n) for n in numbers]
for name, n, m in zip(names, numbers, middle):
    print(f"{name}: median {m:.1f} rows a second, {min(n):.1f} to {max(n):.1f}")
print(f"{names[1]} over {names[0]}: {middle[1] / middle[0]:.2f}")
END
