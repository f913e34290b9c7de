#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train --dry-run: parameters and memory; nothing is written.
# ctest: timeout 300
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy
dry=(train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --dry-run -q)

show size_figures -- "${dry[@]}"
show size_figures -- "${dry[@]}" --head 12 --freeze-rest --batch 8
show json_keys -- "${dry[@]}" --json

echo "== what costs memory"
weights() { "$CLTOOL" "${dry[@]}" --json "$@" | json_numbers weight_bytes; }
total() { "$CLTOOL" "${dry[@]}" --json "$@" | json_numbers memory_bytes; }
elements=$("$CLTOOL" "${dry[@]}" --json | json_numbers elements)
sgd=$(weights --optimizer sgd)
echo "a state: $((($(weights --optimizer adagrad) - sgd) / elements)) bytes an element"
echo "accumulated gradients: $((($(weights --optimizer sgd --accumulate 2) - sgd) / elements)) bytes an element"
[ "$(total --batch 128)" -gt "$(total --batch 32)" ] && echo "larger batches need more"

echo "== nothing is written"
"$CLTOOL" "${dry[@]}" -o a.onnx --checkpoint a.npz --log a.csv --plot a.svg --tensorboard board >/dev/null
ls a.* board 2>&1
finish
