#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# All forms of inputs: sets of arrays, tables by column, colour images, shapes, batches.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

le() { # BYTES NUMBER, the lowest byte first
  local i
  for ((i = 0; i < $1; i++)); do printf %b "\\x$(printf %02x $((($2 >> (8 * i)) & 255)))"; done
}
crc32() { gzip -c <"$1" | tail -c 8 | head -c 4; }
zip_entry() { # FILE: the fields that both headers have, from version to the lengths of names
  le 2 20 && le 2 0 && le 2 0 && le 2 0 && le 2 33
  crc32 "$1"
  le 4 "$(wc -c <"$1")" && le 4 "$(wc -c <"$1")"
  le 2 "${#1}" && le 2 0
}
zip_stored() { # FILE...: an archive of stored files on standard output
  local file offset=0
  : >directory
  for file in "$@"; do
    { printf 'PK\3\4' && zip_entry "$file" && printf %s "$file" && cat "$file"; } >local
    { printf 'PK\1\2' && le 2 20 && zip_entry "$file" && le 2 0 && le 2 0 && le 2 0 && le 4 0 && le 4 $offset &&
      printf %s "$file"; } >>directory
    cat local
    offset=$((offset + $(wc -c <local)))
  done
  cat directory
  printf 'PK\5\6' && le 4 0 && le 2 $# && le 2 $# && le 4 "$(wc -c <directory)" && le 4 $offset && le 2 0
}
two_graph() {
  onnx_node Sub difference 'x z' y
  onnx_input x 1 n
  onnx_input z 1 n
  onnx_output y 1 n
}
onnx_model two_graph >two.onnx
f32 40a00000 40c00000 | npy '<f4' '(2,)' >x.npy # 5 6
f32 3f800000 40000000 | npy '<f4' '(2,)' >z.npy # 1 2
f32 3f800000 40000000 40400000 | npy '<f4' '(3,)' >three.npy

echo "== a set of arrays by name"
zip_stored x.npy z.npy >both.npz
show run two.onnx -i both.npz -q
show run two.onnx -i x=both.npz --fill z=ones -q
zip_stored x.npy three.npy >strange.npz
show run two.onnx -i strange.npz -q
show run two.onnx -i z=strange.npz --fill x=ones -q
zip_stored three.npy >single.npz
show run two.onnx -i x=single.npz -i z=single.npz -q
zip_stored three.npy x.npy z.npy >more.npz
show run two.onnx -i x=more.npz -i z=more.npz -q
echo "== a small file of a large array: refused before it is unpacked"
row_graph() { relu_graph 1 4; }
onnx_model row_graph >row.onnx
large_npz() { # DESCR SHAPE BYTES: gzip has the deflated data, its CRC and size
  { npy "$1" "$2" </dev/null && head -c "$3" /dev/zero; } | gzip -9 >packed.gz
  local packed
  packed=$(($(wc -c <packed.gz) - 18))
  fields() { le 2 20 && le 2 0 && le 2 8 && le 4 0 && tail -c 8 packed.gz | head -c 4 && le 4 $packed &&
    tail -c 4 packed.gz && le 2 5 && le 2 0; }
  { printf 'PK\3\4' && fields && printf x.npy && tail -c +11 packed.gz | head -c $packed; } >local
  { printf 'PK\1\2' && le 2 20 && fields && le 2 0 && le 2 0 && le 2 0 && le 4 0 && le 4 0 && printf x.npy; } >directory
  cat local directory
  printf 'PK\5\6' && le 4 0 && le 2 1 && le 2 1 && le 4 "$(wc -c <directory)" && le 4 "$(wc -c <local)" && le 2 0
}
large_npz '<f4' '(1, 50000000)' 200000000 >large.npz
show run row.onnx -i large.npz -q
# Its data are damaged behind the header, which nobody notices who does not unpack them.
head -c 400 large.npz >damaged.npz
head -c 1000 /dev/zero | LC_ALL=C tr '\0' '\377' >>damaged.npz
tail -c +1401 large.npz >>damaged.npz
show run row.onnx -i damaged.npz -q
large_npz '<f4' '(1, 4)' 16 >fits.npz
show run row.onnx -i fits.npz -q
echo "== a table by column"
printf 'z,x\r\n1,5\r\n2,6\r\n' >table.csv
show run two.onnx -i table.csv -q
printf 'z,q\n1,5\n' >other.csv
show run two.onnx -i other.csv -q
printf 'z,x\n1,5\0,6\n' >nul.csv
show run two.onnx -i nul.csv -q
echo "== one symbol, two sizes"
show run two.onnx -i x=x.npy -i z=three.npy -q
show run two.onnx -i x=x.npy --fill z=ones
show run two.onnx --fill ones
show run two.onnx --fill ones --shape x=4 -q
show run two.onnx -i x=x.npy --fill z=ones --shape x=3 -q

echo "== colour images"
{ # 2x2, 24 bits, from the lower left: red, yellow; then red, white
  printf 'BM' && le 4 70 && le 4 0 && le 4 54
  le 4 40 && le 4 2 && le 4 2 && le 2 1 && le 2 24 && le 4 0 && le 4 16 && le 4 2835 && le 4 2835 && le 4 0 && le 4 0
  printf '\0\0\377\0\377\377\0\0'
  printf '\0\0\377\377\377\377\0\0'
} >colours.bmp
first_graph() { # the first channel's mean over height and width, and the last one's
  onnx_node GlobalAveragePool pool x y
  onnx_input x 1 n 3 h w
  onnx_output y 1 n 3 1 1
}
onnx_model first_graph >channels.onnx
show run channels.onnx --image colours.bmp --top 3
show run channels.onnx --image colours.bmp --top 3 --channels bgr --layout nchw
show run channels.onnx --image colours.bmp --top 3 --scale 2 --mean 0.5,0,1 --std 1,2,4 -q
show run channels.onnx --image colours.bmp --image colours.bmp -q
show run channels.onnx --image colours.bmp --dim h=4 --dim w=3 --resize pad -q
bytes_graph() {
  onnx_node Identity same x y
  onnx_input x 2 1 2 2 3
  onnx_output y 2 1 2 2 3
}
onnx_model bytes_graph >bytes.onnx
show run bytes.onnx --image colours.bmp
show run bytes.onnx --image colours.bmp --channels gray -q
finish
