#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# "-" as a file: values from standard input, an output to standard output, reports on standard error.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy
export TMPDIR=$WORK/.test/temporary
mkdir "$TMPDIR"
"$CLTOOL" run digits.onnx -i heldout.npy -o out -q >/dev/null
python - <<'P'
import zipfile
with zipfile.ZipFile("one.npz", "w") as file:
    file.write("heldout.npy", "image.npy")
with open("one.csv", "w") as file:
    print(",".join(str(i / 64) for i in range(64)), file=file)
P

piped() { # NAME FILE ARGS...: standard output goes to the file NAME
  printf '$ cltool %s <%s >%s\n' "${*:3}" "$2" "$1"
  "$CLTOOL" "${@:3}" <"$2" >"$1" 2>.test/err
  local code=$?
  normal <.test/err | short | sed -E 's/ in [0-9.e-]+ s, .*/ in N s/' | sed -e 's/cltool-[A-Za-z0-9]*/cltool-NAME/' -e 's/^/! /'
  printf '[exit %d]\n\n' $code
}
piped y1.npy heldout.npy run digits.onnx -i - -o -
piped y2.npy one.npz run digits.onnx -i image=- -o - -q
piped z.csv one.csv run digits.onnx -i image=- -o - --format csv
for file in y1.npy y2.npy; do cmp "$file" out/probabilities.npy; done
awk -F, '{for (i = 1; i <= NF; i++) sum += $i; print NF, "columns, sum", sprintf("%.3f", sum)}' z.csv
piped z.npz heldout.npy run digits.onnx -i - -o - --format npz -q
piped z.jsonl heldout.npy run digits.onnx -i - -o - --format jsonl -q
piped top.jsonl one.csv run digits.onnx -i - -o - --format jsonl --top 1 -q
python - <<'P'
import json, sys, zipfile
sys.path.insert(0, ".")
with zipfile.ZipFile("z.npz") as file:
    print(file.namelist(), file.read("probabilities.npy") == open("y1.npy", "rb").read())
for name in "z.jsonl", "top.jsonl":
    lines = [json.loads(line) for line in open(name)]
    last = lines[-1].get("values") or lines[-1]["top"]
    print(len(lines), sorted(lines[0]), len(last))
P
piped summary heldout.npy predict digits.onnx -i - -o rows.npy --batch 360 -q
cmp rows.npy out/probabilities.npy
piped p.npy heldout.npy predict digits.onnx -i - -o - --batch 360 -q
cmp p.npy out/probabilities.npy
piped p.csv heldout.npy predict digits.onnx -i - -o probabilities=- --format csv -q
piped p.jsonl heldout.npy predict digits.onnx -i - -o - --format jsonl --top 2 -q
head -n 2 p.csv | cut -d, -f1-3 | sed -E 's/[0-9]e-[0-9]+|[0-9.]{6,}/X/'
wc -l <p.csv
cut -c1-20 p.jsonl | sed 1q
wc -l <p.jsonl
# Two outputs: .npz has both.
two() {
  onnx_node Identity first x a
  onnx_node Neg second x b
  onnx_input x 1 2 2
  onnx_output a 1 2 2
  onnx_output b 1 2 2
}
onnx_model two >two.onnx
piped two.npz /dev/null run two.onnx --fill x=ones -o - --format npz -q
python -c 'import zipfile; print(zipfile.ZipFile("two.npz").namelist())'
piped none /dev/null run two.onnx --fill x=ones -o -
piped none heldout.npy predict digits.onnx -i - -o - --format npz
piped none heldout.npy predict digits.onnx -i - -o - --json
piped none heldout.npy predict digits.onnx -i - -o - --resume
piped none heldout.npy predict digits.onnx -i - -o rows2.npy --format csv
piped none heldout.npy run digits.onnx -i - -o - --format yaml
piped graph.dot /dev/null inspect digits.onnx --dot -
head -n 1 graph.dot

# Wrong usage, and data that are none.
head -c 100 /dev/zero >zeros
piped none zeros run digits.onnx -i -
piped none /dev/null run digits.onnx -i -
head -c 1000 heldout.npy >cut.npy
piped none cut.npy run digits.onnx -i -
piped none heldout.npy run digits.onnx -i - -o - --json
piped none heldout.npy run digits.onnx -i - -o out --format csv
piped none /dev/null inspect digits.onnx --dot - --json
piped none heldout.npy run digits.onnx -i - -o digits.onnx/folder
"$CLTOOL" run digits.onnx -i heldout.npy -o - 2>.test/err >/dev/full
tail -n 1 .test/err
# A terminal gets no binary data, and gives none.
"$CLTOOL" predict digits.onnx -i heldout.npy -o - --format csv -q 2>.test/err >/dev/full
tail -n 1 .test/err
for arguments in "-i heldout.npy -o -" "-i -"; do
  NO_COLOR=1 script -qec "'$CLTOOL' run digits.onnx $arguments" /dev/null </dev/null | tr -d '\r' | head -n 1
done
ls "$TMPDIR"
finish
