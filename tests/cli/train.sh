#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool train: the loss becomes smaller; a training that was cut goes on with the same bits, also
# after it was killed; the files that it writes; what is refused.
# ctest: timeout 900
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy images
# Losses differ between devices; rates depend on time.
fixed() { idle | sed -E -e 's/(idle_share": )[0-9.e-]+/\1N/' -e 's/"file"/file/'; }
labelled=(train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy)

echo "== three epochs"
show train_figures -- "${labelled[@]}" --epochs 3 --validation 0.2 -o three.onnx --log three.jsonl --checkpoint three.npz
grep -c '"rate"' three.jsonl
head -n 1 three.jsonl | log_figures
grep epoch_loss three.jsonl | head -n 1 | log_figures
losses three.jsonl | awk 'NR == 1 { first = $1 } { last = $1 } END { print last < first / 2 ? "smaller" : "not smaller" }'
show json_keys -- "${labelled[@]}" --epochs 1 -o one.onnx -q --json
"$CLTOOL" "${labelled[@]}" --epochs 1 --validation 0.2 -o one.onnx -q --force |
  sed -E 's/[0-9.e-]+ \([0-9.]+ %\)/LOSS (SHARE %)/g; s/[0-9.]+ rows/N rows/' | fixed

echo "== the best, and the last"
# The rate grows until each step is far too large.
kept=("${labelled[@]}" --validation 0.2 --optimizer sgd --clip-norm 1 --lr 1e-4 --schedule exponential:gamma=1.3
  --checkpoint kept.npz --every 4 --keep 2 --best best.onnx)
"$CLTOOL" "${labelled[@]}" --epochs 1 --validation 0.2 -o last.onnx --best best.onnx --best-by accuracy -q >/dev/null
cmp last.onnx best.onnx && echo "the only epoch was the best"
"$CLTOOL" "${kept[@]}" --epochs 5 -o last.onnx -q --force >/dev/null
ls kept*
cmp -s last.onnx best.onnx || echo "the last epoch was not the best"
cp best.onnx before.onnx
"$CLTOOL" "${kept[@]}" --epochs 6 -o last.onnx -q --force --resume >/dev/null
cmp best.onnx before.onnx && echo "a training that goes on knows the best"

echo "== the trained model"
"$CLTOOL" run three.onnx -i heldout.npy -o before -q >/dev/null
python - before/probabilities.npy heldout_labels.npy <<'PYTHON'
import sys

import npy

data = npy.read(sys.argv[1])[1]
labels = npy.read(sys.argv[2])[1]
rows = [data[i : i + 10] for i in range(0, len(data), 10)]
right = sum(max(range(10), key=row.__getitem__) == label for row, label in zip(rows, labels))
print("right:", "more than 350 of 360" if right > 350 else right)
PYTHON

echo "== a training that goes on"
"$CLTOOL" "${labelled[@]}" --epochs 6 --validation 0.2 -o whole.onnx -q >/dev/null
show train_figures -- "${labelled[@]}" --epochs 6 --validation 0.2 -o resumed.onnx --checkpoint three.npz --resume
cmp whole.onnx resumed.onnx && echo "the same file"
"$CLTOOL" "${labelled[@]}" --epochs 6 --validation 0.2 -o begun.onnx --checkpoint none.npz --resume -q >/dev/null
cmp whole.onnx begun.onnx && echo "the same file"

# The step of a checkpoint; 0: there is none.
step_of() {
  [ -e "$1" ] || { echo 0 && return; }
  python3 -c 'import sys, zipfile; print(int.from_bytes(zipfile.ZipFile(sys.argv[1]).read("step.npy")[-8:], "little"))' "$1"
}
logged_steps() { sed -nE 's/^\{"step":([0-9]+),.*/\1/p'; }
# Starts a training that would not end by itself as $pid. start FILE ARGS...: it goes on with FILE.npz,
# and FILE.jsonl has ten lines more. earlier.jsonl: the log before; $done: the steps of the checkpoint.
start() {
  local file=$1 before
  shift
  touch "$file.jsonl"
  cp "$file.jsonl" "earlier.jsonl"
  before=$(wc -l <"$file.jsonl") done=$(step_of "$file.npz")
  "$CLTOOL" "$@" --epochs 1000000000 -o "$file.onnx" --checkpoint "$file.npz" --log "$file.jsonl" --resume -q >/dev/null 2>&1 &
  pid=$!
  while kill -0 "$pid" && [ "$(wc -l <"$file.jsonl")" -lt $((before + 10)) ]; do sleep 0.02; done
}
# The lines of the steps that were done; their rates differ between runs.
lines_done() { grep '^{"step"' "$1" | head -n "$done"; }
# stop SIGNAL FILE ARGS...: sends the signal to such a training, prints the exit code, and whether it
# began where it was: the log has the same lines up to there, and each step once.
stop() {
  local signal=$1 file=$2
  shift 2
  start "$file" "$@"
  kill "-$signal" "$pid"
  wait "$pid"
  echo "exit $?"
  cmp <(lines_done "earlier.jsonl") <(lines_done "$file.jsonl") &&
    logged_steps <"$file.jsonl" | awk '$1 != NR { exit 1 }' && echo "it began where it was"
}
last_is_logged() { [ "$(step_of "$1.npz")" = "$(logged_steps <"$1.jsonl" | tail -n 1)" ] && echo "the last step is in the log"; }
# Ends a training that was stopped two epochs later, and compares it with a whole one. STEPS_PER_EPOCH FILE ARGS...
end_later() {
  local file=$2 epochs=$(($(step_of "$2.npz") / $1 + 2))
  shift 2
  "$CLTOOL" "$@" --epochs $epochs -o "$file.onnx" --checkpoint "$file.npz" --log "$file.jsonl" --resume -q >/dev/null
  "$CLTOOL" "$@" --epochs $epochs -o whole_"$file.onnx" -q >/dev/null
  cmp whole_"$file.onnx" "$file.onnx" && echo "the same file"
}

echo "== killed, again and again"
for _ in 1 2 3 4 5; do stop KILL killed "${labelled[@]}" --validation 0.2 --every 3; done 2>/dev/null
end_later 9 killed "${labelled[@]}" --validation 0.2
find . -name '*killed*' | sort

echo "== interrupted, in the middle of steps"
for _ in 1 2 3; do
  stop INT ended "${labelled[@]}" --accumulate 2 2>/dev/null
  last_is_logged ended
done
end_later 6 ended "${labelled[@]}" --accumulate 2

echo "== interrupted, while a kernel runs"
(
  export CLG_HOSTILE_HANG=$WORK/hang OPENCL_LAYERS=$CLG_BUILD_DIR/tests/layers/opencl_hostile.so${OPENCL_LAYERS:+:$OPENCL_LAYERS}
  start long "${labelled[@]}"
  touch hang
  sleep 0.5
  kill -INT "$pid"
  sleep 1.5
  kill -0 "$pid" && echo "it waits"
  rm hang
  wait "$pid"
  echo "exit $?"
) 2>/dev/null
last_is_logged long
end_later 12 long "${labelled[@]}"

echo "== a disk that is full"
cp three.npz full.npz
(
  trap '' XFSZ
  ulimit -f 8 # KiB a file: too little for the weights
  "$CLTOOL" "${labelled[@]}" --epochs 6 --validation 0.2 --checkpoint full.npz --every 1 --resume -o full.onnx -q 2>&1
  echo "exit $?"
) | sed -E 's/: [A-Z][a-z ]+$/: REASON/'
cmp three.npz full.npz && echo "the checkpoint is as it was"
find . -name '*full*' | sort
"$CLTOOL" "${labelled[@]}" --epochs 6 --validation 0.2 -o full.onnx --checkpoint full.npz --resume -q >/dev/null
cmp whole.onnx full.onnx && echo "the same file"

echo "== a part of the weights"
"$CLTOOL" "${labelled[@]}" --epochs 1 -o part.onnx --train '11.*' -q --json | fixed
"$CLTOOL" "${labelled[@]}" --epochs 1 -o part.onnx --freeze '*.weight' -q --json --force | fixed

echo "== optimizers, schedules, losses"
for words in "sgd:momentum=0.9,nesterov=1 cosine:warmup_steps=4 cross-entropy:label_smoothing=0.1" \
  "adamw:weight_decay=0.01 step:period=5,gamma=0.5 cross-entropy:ignore_index=-1" \
  "rmsprop:centered=1 linear cross-entropy" "adagrad exponential:gamma=0.9 cross-entropy"; do
  read -r optimizer schedule loss <<<"$words"
  "$CLTOOL" train digits.onnx -i heldout.npy --target heldout_labels.npy --loss "$loss" --optimizer "$optimizer" \
    --schedule "$schedule" --epochs 2 --clip-norm 1 --accumulate 2 -o words.onnx -q --force | tail -n 1 | fixed
done

echo "== weights of classes"
printf '1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n' >ones.csv
printf '1,2,1,1,1,1,1,1,1,0.5\n' >weights.csv
f32 3f800000 40000000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f000000 | npy '<f4' '(10,)' >weights.npy
for file in ones.csv weights.csv weights.npy; do
  "$CLTOOL" "${labelled[@]}" --epochs 1 --class-weights $file -o "${file/./_}.onnx" -q >/dev/null
done
"$CLTOOL" "${labelled[@]}" --epochs 1 -o one.onnx -q --force >/dev/null
cmp -s weights_csv.onnx one.onnx || echo "weights change the training"
cmp weights_csv.onnx weights_npy.onnx && echo "the same file"

echo "== refused"
show "${labelled[@]}" -o three.onnx -q
show "${labelled[@]}" -q
show train digits.onnx -i heldout.npy -o a.onnx -q
show train digits.onnx -i heldout.npy --loss cross-entropy -o a.onnx -q
show train digits.onnx -i heldout.npy --loss hinge --target heldout_labels.npy -o a.onnx -q
show "${labelled[@]}" --optimizer newton -o a.onnx -q
show "${labelled[@]}" --optimizer adam:beta3=1 -o a.onnx -q
show "${labelled[@]}" --optimizer adam:beta1 -o a.onnx -q
show "${labelled[@]}" --optimizer sgd:momentum=1 -o a.onnx -q
show "${labelled[@]}" --schedule step:period=0.5 -o a.onnx -q
show "${labelled[@]}" --batchnorm sometimes -o a.onnx -q
show "${labelled[@]}" --batchnorm training:momentum=1 -o a.onnx -q
show "${labelled[@]}" --dropout 0.5 -o a.onnx -q
show "${labelled[@]}" --dropout on:ratio=1 -o a.onnx -q
show "${labelled[@]}" --optimizer adam:beta1=0.9, -o a.onnx -q
echo '1,2,3' >few.csv
show "${labelled[@]}" --class-weights few.csv -o a.onnx -q
printf '1,2\n3,4\n' >table.csv
show "${labelled[@]}" --class-weights table.csv -o a.onnx -q
show "${labelled[@]}" --class-weights heldout.npy -o a.onnx -q
show "${labelled[@]}" --class-weights none.csv -o a.onnx -q
show "${labelled[@]}" --on-nan ignore -o a.onnx -q
show "${labelled[@]}" --best b.onnx -o a.onnx -q
show "${labelled[@]}" --best b.onnx --best-by luck --validation 0.2 -o a.onnx -q
show train digits.onnx -i heldout.npy --target heldout.npy --loss mse --best b.onnx --best-by accuracy --validation 0.2 \
  -o a.onnx -q
show "${labelled[@]}" --keep 2 -o a.onnx -q
show "${labelled[@]}" --train nothing -o a.onnx -q
show "${labelled[@]}" --validation 1 -o a.onnx -q
show "${labelled[@]}" --resume -o a.onnx -q
show "${labelled[@]}" --lr 0.5 --epochs 6 --validation 0.2 --checkpoint three.npz --resume -o a.onnx -q
show "${labelled[@]}" --epochs 6 --validation 0.2 --batch 16 --checkpoint three.npz --resume -o a.onnx -q
show "${labelled[@]}" --epochs 6 --validation 0.2 --augment flip --checkpoint three.npz --resume -o a.onnx -q
i64 2 0 | npy '<i8' '(2,)' >short.npy
show train digits.onnx -i heldout.npy --target short.npy --loss cross-entropy -o a.onnx -q
show "${labelled[@]}" --optimizer sgd --lr 1e30 --epochs 3 -o a.onnx -q 2>&1 | sed -E 's/step [0-9]+ is -?[a-z]+/step N is not finite/; s/; the first.*/; the first .../'
ls a.onnx 2>&1
finish
