#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# IDX files as inputs: types, shapes, pixels, gzip, headers that lie, and the same training as from
# other files.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx heldout.npy heldout_labels.npy

be32() {
  local n
  for n in "$@"; do printf %b "\\x$(printf %02x $((n >> 24 & 255)))\\x$(printf %02x $((n >> 16 & 255)))" \
    "\\x$(printf %02x $((n >> 8 & 255)))\\x$(printf %02x $((n & 255)))"; done
}
idx() { # TYPE DIM... <data, the type as the two digits of a hexadecimal number
  printf %b "\\0\\0\\x$1\\x$(printf %02x $(($# - 1)))"
  shift
  be32 "$@"
  cat
}
same_graph() { # DTYPE DIM...
  onnx_node Identity same x y
  pb_text 2 same
  onnx_input x "$@"
  onnx_output y "$@"
}
values() { # FILE FORMAT: what a .npy file holds
  tail -c +129 "$1" | od -An -t "$2" -w1000 -v | tr -s ' '
}
predict() { # FILE FORMAT OPTION...
  rm -f y.npy
  "$CLTOOL" predict "$model" -i "$1" -o y.npy --batch 2 -q "${@:3}" >/dev/null && values y.npy "$2"
}

echo "== types, as numbers"
onnx_model same_graph 1 N 2 >float.onnx
onnx_model same_graph 7 N >int64.onnx
onnx_model same_graph 11 N 2 >double.onnx
model=int64.onnx
printf '\0\7\377' | idx 08 3 >labels.idx1-ubyte
predict labels.idx1-ubyte d8
printf '\0\7\377' | idx 09 3 >labels-idx1-byte
predict labels-idx1-byte d8
printf '\1\2\377\376' | idx 0B 2 >x-idx1-short
predict x-idx1-short d8
be32 -5 65537 7 | idx 0C 3 >x.idx
predict x.idx d8
model=float.onnx
printf '\x3f\x80\0\0\xc0\0\0\0\x40\x40\0\0\x40\x80\0\0\0\0\0\0\x80\0\0\0' | idx 0D 3 2 >x-idx2-float
predict x-idx2-float f4
printf '\xbf\xf0\0\0\0\0\0\0\x40\x10\0\0\0\0\0\0' | idx 0E 1 2 >x-idx2-double
predict x-idx2-double f4
model=double.onnx
predict x-idx2-double f8
show predict float.onnx -i labels-idx1-byte -o y.npy -q --force
printf '\0\1\2\3' | idx 08 2 2 >flat-idx2-ubyte
show predict float.onnx -i flat-idx2-ubyte -o y.npy -q --force
model=float.onnx
predict flat-idx2-ubyte f4 --cast

echo "== pixels, as those of images"
printf '\0\63\146\377\63\0\0\0\377\377\377\377' | idx 08 3 2 2 >images-idx3-ubyte
gzip -n <images-idx3-ubyte >images-idx3-ubyte.gz
for dims in 'N 2 2' 'N 1 2 2' 'N 2 2 1' 'N 4' 'N 1 h w'; do
  # shellcheck disable=SC2086
  onnx_model same_graph 1 $dims >pixels.onnx
  echo "-- $dims"
  model=pixels.onnx
  predict images-idx3-ubyte f4
done
predict images-idx3-ubyte.gz f4
predict images-idx3-ubyte.gz f4 --scale 2 --mean 0.5 --std 0.25
onnx_model same_graph 2 N 2 2 >bytes.onnx
model=bytes.onnx
predict images-idx3-ubyte u1
printf '\0\377\63\0\0\377' | idx 08 1 2 1 3 >colour-idx4-ubyte
onnx_model same_graph 1 N 2 1 3 >colour.onnx
model=colour.onnx
predict colour-idx4-ubyte f4 --mean 0,1,0.2 --std 1,2,4
gzip -n <colour-idx4-ubyte >colour.idx.gz
show predict bytes.onnx -i colour.idx.gz -o y.npy -q --force
show predict colour.onnx -i colour-idx4-ubyte -o y.npy --mean 1,2 -q --force
onnx_model same_graph 1 N 3 3 >other.onnx
show predict other.onnx -i images-idx3-ubyte -o y.npy -q --force

echo "== parts of a gzip file"
{ head -c 20 images-idx3-ubyte | gzip -n && tail -c +21 images-idx3-ubyte | gzip -n; } >parts-idx3-ubyte.gz
model=bytes.onnx
predict parts-idx3-ubyte.gz u1

echo "== files that lie"
onnx_model same_graph 2 N h w >any.onnx
refused() {
  show predict "${2-bytes.onnx}" -i "$1" -o y.npy -q --force
}
printf '\0\0\10' >short.idx && refused short.idx
printf '\0\0\10\3\0\0\0\1' >header.idx && refused header.idx
printf '\223NUMPY' >npy.idx && refused npy.idx
printf x | idx 07 1 >type.idx && refused type.idx
printf '\0\0\10\0' >none.idx && refused none.idx
printf '\0\0\10\377' >axes.idx && refused axes.idx
head -c 23 images-idx3-ubyte >cut.idx && refused cut.idx
{ cat images-idx3-ubyte && printf x; } >more.idx && refused more.idx
idx 08 4294967295 4294967295 4294967295 </dev/null >huge.idx && refused huge.idx
idx 0E 0 4294967295 4294967295 4294967295 </dev/null >huge0.idx && refused huge0.idx
idx 08 0 4294967295 4294967295 </dev/null >none0.idx && refused none0.idx any.onnx
idx 08 4294967295 0 4 </dev/null >none1.idx && refused none1.idx any.onnx
idx 0E 0 2048 2048 </dev/null | gzip -n >none2.idx.gz && refused none2.idx.gz any.onnx
idx 08 0 4096 4096 </dev/null >none3.idx &&
  "$CLTOOL" predict any.onnx -i none3.idx -o y.npy -q --force >/dev/null && echo "the largest shape without data"
idx 08 1000000 28 28 </dev/null | gzip -n >ratio.idx.gz && refused ratio.idx.gz
idx 08 1 2 2 </dev/null | { cat && head -c 1000000 /dev/zero; } | gzip -n >bomb.idx.gz && refused bomb.idx.gz
idx 08 4 2 2 </dev/null | { cat && head -c 15 /dev/zero; } | gzip -n >fewer.idx.gz && refused fewer.idx.gz
head -c 25 images-idx3-ubyte.gz >cut.idx.gz && refused cut.idx.gz
{ head -c 15 images-idx3-ubyte.gz && printf 'damaged' && tail -c 12 images-idx3-ubyte.gz; } >damaged.idx.gz
refused damaged.idx.gz
{ cat images-idx3-ubyte.gz && printf 'more'; } >trailer.idx.gz && refused trailer.idx.gz
TMPDIR=$WORK/nowhere refused images-idx3-ubyte.gz
mkdir folder.idx && show train digits.onnx -i image=folder.idx --target labels.idx1-ubyte --loss cross-entropy -o a.onnx -q
refused missing-idx3-ubyte.gz
show run bytes.onnx -i images-idx3-ubyte -q

echo "== the same training as from .npy"
python - <<'PYTHON'
import struct

import npy

def write_idx(target, code, letter, shape, elements):
    with open(target, "wb") as out:
        out.write(bytes([0, 0, code, len(shape)]) + struct.pack(">%dI" % len(shape), *shape))
        out.write(struct.pack(">%d%s" % (len(elements), letter), *elements))

write_idx("heldout.idx", 0x0D, "f", *npy.read("heldout.npy"))
write_idx("heldout-labels-idx1-ubyte", 0x08, "B", *npy.read("heldout_labels.npy"))
PYTHON
gzip -n heldout.idx heldout-labels-idx1-ubyte
"$CLTOOL" train digits.onnx -i heldout.npy --target heldout_labels.npy --loss cross-entropy --epochs 2 --validation 0.2 \
  -o npy.onnx -q >/dev/null
"$CLTOOL" train digits.onnx -i heldout.idx.gz --target heldout-labels-idx1-ubyte.gz --loss cross-entropy --epochs 2 \
  --validation 0.2 -o idx.onnx -q >/dev/null
cmp npy.onnx idx.onnx && echo "the same file"
finish
