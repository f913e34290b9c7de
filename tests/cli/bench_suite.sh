#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool bench --suite: built-in models, without a file. What it prints, not how fast it is.
# ctest: timeout 900
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

show bench_figures -- bench --suite mlp,lstm --runs 2 --warmup 0 --measure -q -o suite.md
bench_figures <suite.md
show bench_figures -- bench --suite mlp --batch 3 --runs 2 --warmup 0 --each -q
echo "== JSON"
show json_keys -- bench --suite mlp lstm --batch 1 --runs 2 --warmup 0 --json -q -o suite.json
"$CLTOOL" bench --suite mlp --batch 1,2 --runs 2 --warmup 0 --json -q | grep -E '"(model|batch|flops|precision)"'
json_keys <suite.json
echo "== one seed, one digest"
digests() { "$CLTOOL" bench --suite mlp --batch 1 --runs 1 --warmup 0 --json -q | grep outputs_digest; }
[ "$(digests)" = "$(digests)" ] && echo "the same"

echo "== what needs too much memory is left out, and no failure"
show bench_figures -- bench --suite mlp --batch 1,3000 --runs 1 --warmup 0 -q --limits memory=64m
"$CLTOOL" bench --suite mlp --batch 1,3000 --runs 1 --warmup 0 -q --limits memory=64m --json | grep -E '"(batch|left_out|runs)"' | sed -E 's/(left_out": ).*/\1REASON/'
small_device() {
  CLG_DEVICE_MEMORY=64000000 OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_device.so${OPENCL_LAYERS:+:$OPENCL_LAYERS} \
    show bench_figures -- bench --suite mlp --runs 1 --warmup 0 -q --batch "$1"
}
small_device 1,9000
echo "== faults"
show bench --suite mlp,resnet51
show bench --suite mlp mlp
show bench --suite mlp --fill zeros
show bench --suite mlp --compare cpu
show bench --suite mlp --split layers
show bench --suite mlp --batch 0
show bench --suite mlp -o suite.md
show bench --suite mlp -d nothing-like-this -q
show bench --suite mlp --precision fp12
finish
