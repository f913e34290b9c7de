#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Images: resizing beside a reference in integers, extreme sizes, limits, files that are refused,
# and bad images among good ones in cltool predict.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
make() { python3 "$CLG_SOURCE_DIR/tests/cli/images.py" "$@"; }

same_graph() { # CHANNELS
  onnx_node Identity same x y
  onnx_input x 1 n "$1" h w
  onnx_output y 1 n "$1" h w
}
onnx_model same_graph 1 >gray.onnx
onnx_model same_graph 3 >same.onnx
onnx_model same_graph 4 >alpha.onnx

echo "== beside the reference"
# resized HOW WIDTH HEIGHT CHANNELS FILE...
resized() {
  local files=("${@:5}") model=same file given=()
  case $4 in 1) model=gray ;; 4) model=alpha ;; esac
  for file in "${files[@]}"; do given+=(--image "$file"); done
  given+=(--resize "$1" --shape "x=${#files[@]}x$4x$3x$2" -o out -q --force)
  "$CLTOOL" run $model.onnx "${given[@]}" >/dev/null &&
    make expect "$1" "$2" "$3" out/y.npy "${files[@]}"
}
for size in 1x1 1x9 7x1 13x8 8x13 31x17 40x40; do
  make png "${size%x*}" "${size#*x}" 3 "small-$size.png"
done
make png 21 34 1 small-gray.png
make png 21 34 4 small-alpha.png
make deep 19 12 3 small-deep.png
make deep 19 12 1 small-deep-gray.png
for how in stretch crop pad; do
  for size in '8 8' '5 11' '40 40' '19 12'; do
    # shellcheck disable=SC2086
    resized $how $size 3 small-*.png
  done
  resized $how 9 10 1 small-gray.png small-deep-gray.png
  resized $how 9 10 4 small-alpha.png
done
# An ordinary photograph. A part of its height is 2/3, which rounds up.
make png 500 375 3 large.png
for how in crop pad; do resized $how 224 224 3 large.png; done

echo "== extreme sizes"
# one_colour WIDTH HEIGHT HOW
one_colour() {
  rm -rf out
  make png "$1" "$2" 1 one.png 127
  "$CLTOOL" run gray.onnx --image one.png --resize "$3" --shape x=1x1x224x224 -o out -q \
    >/dev/null &&
    printf '%dx%d %s: ' "$1" "$2" "$3" && make constant out/y.npy
}
for how in crop stretch; do
  one_colour 1 3600 $how
  one_colour 3600 1 $how
  one_colour 1 20000 $how
done
one_colour 1 16777216 crop

echo "== limits"
make header 20000 20000 huge.png
show run same.onnx --image huge.png -q
show run same.onnx --image huge.png --max-pixels 500000000 -q
show run same.onnx --image small-8x13.png --max-pixels 103 -q
show run gray.onnx --image small-8x13.png --max-pixels 104 -q
make header 16777217 1 wide.png
show run same.onnx --image wide.png --resize crop --shape x=1x3x8x8 -q
show run same.onnx --image small-8x13.png --max-pixels 0 -q

echo "== files that decoders would read in part or with wrong colours"
make chunk small-8x13.png IDAT pixels.png
show run same.onnx --image pixels.png -q
make chunk small-8x13.png pHYs CgBI cgbi.png
show run same.onnx --image cgbi.png -q
head -c -12 small-8x13.png >no-end.png
show run same.onnx --image no-end.png -q
make bmp 6 5 good.bmp
show short -- run same.onnx --image good.bmp -q
head -c -3 good.bmp >cut.bmp # two bytes of padding and one of a pixel
show run same.onnx --image cut.bmp -q
make cmyk cmyk.jpg
show run same.onnx --image cmyk.jpg -q
make cmyk gap.jpg 2 # bytes between segments are skipped
show run same.onnx --image gap.jpg -q
base64 -d >small.jpg <<'JPEG'
/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxO
UlNSMj5aYVpQYEpRUk//wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABkQAAEF
AAAAAAAAAAAAAAAAAAADBiEzUf/aAAgBAQAAPwArESrjD//Z
JPEG
show short -- run gray.onnx --image small.jpg -q
# By stb_image, where there is no other decoder: it would use a table that is not there.
LC_ALL=C sed 's/\xff\xc4/\xff\xfe/' small.jpg >no_table.jpg
export CLG_IMAGES=off
show short -- run gray.onnx --image small.jpg -q
show run gray.onnx --image no_table.jpg -q
show run same.onnx --image huge.png -q
show run same.onnx --image small-8x13.png --max-pixels 103 -q
unset CLG_IMAGES
for n in 2 6 100; do
  head -c -$n small.jpg >cut.jpg
  show run gray.onnx --image cut.jpg -q
done

echo "== bad images among good ones"
mkdir folder
cp small-8x13.png folder/0.png
cp pixels.png folder/1.png
cp small-31x17.png folder/2.png
cp huge.png folder/3.png
cp cut.jpg folder/4.jpg
cp small-40x40.png folder/5.png
rates() { sed -E 's/ in [0-9.e-]+ s, .*/ in N s/'; }
eight=(--shape x=6x3x8x8 --batch 4)
show rates -- predict same.onnx -i folder -o y.npy --resize crop "${eight[@]}" -q
make blank y.npy
show rates -- predict same.onnx -i folder -o part.npy --resize crop --shard 2/2 "${eight[@]}" -q
make blank part.npy
"$CLTOOL" predict same.onnx -i folder -o json.npy --resize crop "${eight[@]}" -q --json >json 2>err
echo "exit $?"
sed -n '/"failed"/,$p' json
cat err
cmp y.npy json.npy && echo "the same file"
# The first readable image gives the size; the others must have it.
show rates -- predict same.onnx -i folder -o sizes.npy --batch 4 -q
make blank sizes.npy
mkdir first
cp huge.png first/0.png
cp pixels.png first/1.png
cp small-8x13.png first/2.png
show rates -- predict same.onnx -i first -o first.npy --batch 4 -q
make blank first.npy
bytes_graph() {
  onnx_node Identity same x y
  onnx_input x 2 n 3 8 8
  onnx_output y 2 n 3 8 8
}
onnx_model bytes_graph >bytes.onnx
show rates -- predict bytes.onnx -i folder -o bytes.npy --resize crop --batch 4 -q
make blank bytes.npy
mkdir bad
head -c 30 pixels.png >bad/pixels.png
cp huge.png bad
show predict same.onnx -i bad -o none.npy -q
ls none.npy 2>/dev/null
show predict same.onnx -i folder -o none.npy --shape x=6x3x9x9 -q
finish
