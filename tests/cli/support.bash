# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the scripts beside this file share. A script shows commands as a user types them with all
# that they print and their exit code; `finish` compares that with the file of the script's name
# that ends in .out. What differs from machine to machine is replaced. GOLDEN_UPDATE=1 writes the
# .out files again.
set -u
: "${CLTOOL:?the path of cltool}" "${WORK:?a folder of the test}" "${CLG_SOURCE_DIR:?the source tree}"
test_name=$(basename "$0" .sh)
test_folder=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$WORK/.test"
exec 3>&1 >"$WORK/.test/actual"
cd "$WORK" || exit 1
unset CLG_DEVICE NO_COLOR

# Copies files of the digits example here.
digits() {
  local file
  for file in "$@"; do cp -r "$CLG_SOURCE_DIR/examples/digits/$file" .; done
}

# Names of the machine's devices, folders of this run.
normal() {
  sed -E -e '/AddressSanitizer failed to allocate/d' -e "s#$WORK#WORK#g" -e "s#$CLG_SOURCE_DIR#SOURCE#g" \
    -e 's#^(cltool: )?device [0-9]+:[0-9]+(/[0-9]+)?, .*#\1device P:D, NAME (PLATFORM)#' \
    -e 's#\((libpng|libtiff): .*\)#(\1: REASON)#' \
    -e 's#there is: [0-9]+:[0-9]+ .*#there is: DEVICES#' \
    -e 's#"id:[^"]*"#"id:DEVICE"#g' -e 's#id:[a-z]+:[^ ,;:)]*#id:DEVICE#g'
}

# Every number with a decimal point as N, every number of milliseconds or bytes too.
numbers() { sed -E -e 's/-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?/N/g'; }

# Three digits of every number with a point: devices may differ beyond.
short() {
  perl -pe 's/-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?/sprintf("%.3g", $&)/ge; s/(largest difference) \S+/$1 N/; s/ +/ /g'
}

# The keys of a JSON document, in their order, each once at its depth.
json_keys() { sed -nE 's/^( *)"([A-Za-z0-9_]+)": .*/\1\2/p' | awk '!seen[$0]++'; }

# Losses, accuracies and rates of 'cltool train', which differ between devices and runs.
train_figures() {
  sed -E -e 's/(loss|validation|parameters:|  ) *-?[0-9][0-9.e+-]*( \([0-9.]+ %\))?( rows)?/\1 N\3/g' | idle
}
idle() { sed -E 's/idle [0-9.]+ %/idle N %/'; }
# As train_figures, without the lines of epochs.
result_figures() { train_figures | grep -v '^epoch'; }
# Of lines of --log: the loss of each epoch; lines without the rate of rows, or without any number.
losses() { json_numbers epoch_loss "$1"; }
without_rates() { sed -E 's/"rows_s":[0-9.e+]+/"rows_s":null/' "$@"; }
log_figures() { sed -E 's/:-?[0-9][0-9.e-]*/:N/g'; }

# Times and rates of 'cltool predict'.
predict_figures() { sed -E 's/ in [0-9.e-]+ s, [0-9.]+ a second/ in N s, N a second/' | idle; }

# Numbers of 'cltool bench', which differ from run to run: each is an N.
bench_figures() {
  sed -E -e '/^(clgraph|- clgraph) /s/.*/VERSION/' -e 's/^- device [0-9]+:[0-9]+, .*/- device P:D, NAME (PLATFORM)/' \
    -e '/^(- )?peak of/s/of [0-9]+:[0-9]+/of P:D/' -e 's/, fp16 [0-9]+ GFLOP\/s//' -e 's/ p(50|90|99) ms/ pNN ms/g' \
    -e 's/^(\| *)?[0-9]+:[0-9]+ /\1P:D /' \
    -e 's/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)? ?(k|M|G)?B\b/N/g' -e 's/digest [0-9a-f]+/digest HEX/' -e 's/device [0-9]+:[0-9]+/device P:D/' \
    -e 's/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?( [kMG]FLOP)?/N/g' -e 's/N FLOP/N/; s/ +/ /g' -e 's/fpN/fp32/g'
}

# Sizes as text, which differ between devices.
size_figures() { sed -E 's/[0-9.]+ [kMG]?B/N B/'; }

# What LD_LIBRARY_PATH must be for LD_PRELOAD to have a library of the tests by its name: LD_PRELOAD
# is divided at spaces, which a path may have.
libraries() { echo "$CLG_BUILD_DIR/tests/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; }

# json_numbers KEY [FILE]: the numbers of a key, of JSON with at most one such key a line.
json_numbers() { sed -nE "s/.*\"$1\": ?(-?[0-9][0-9.e+-]*).*/\1/p" "${@:2}"; }

# Python with the modules beside the scripts: npy.
python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CLG_SOURCE_DIR/tests/cli python3 "$@"; }

# show [FILTER --] ARGS...: runs cltool ARGS; standard error is marked with '! '.
show() {
  local filter=cat code
  if [ "${2-}" = -- ]; then
    filter=$1
    shift 2
  fi
  printf '$ cltool%s\n' "${*:+ $*}" | normal
  "$CLTOOL" "$@" >"$WORK/.test/out" 2>"$WORK/.test/err"
  code=$?
  normal <"$WORK/.test/out" | $filter
  normal <"$WORK/.test/err" | $filter | sed 's/^/! /'
  printf '[exit %d]\n\n' "$code"
}

finish() {
  exec >&3
  local expected=$test_folder/$test_name.out
  if [ -n "${GOLDEN_UPDATE-}" ]; then
    cp "$WORK/.test/actual" "$expected"
    echo "wrote $expected"
    exit 0
  fi
  diff -u --label expected --label actual "$expected" "$WORK/.test/actual" || exit 1
  exit 0
}

# ---- protobuf and ONNX by hand -----------------------------------------------------------------
# Each function writes a message's field to standard output.

varint() { # NUMBER, negative ones as 64 bits
  local n=$1 byte
  while :; do
    byte=$((n & 127))
    n=$(((n >> 7) & 0x1ffffffffffffff))
    [ "$n" -eq 0 ] && break
    printf %b "\\x$(printf %02x $((byte | 128)))"
  done
  printf %b "\\x$(printf %02x $byte)"
}
pb_int() { # FIELD NUMBER
  varint $(($1 << 3))
  varint "$2"
}
pb_bytes() { # FIELD FILE
  varint $(($1 << 3 | 2))
  varint "$(wc -c <"$2")"
  cat "$2"
}
pb_text() { # FIELD TEXT
  varint $(($1 << 3 | 2))
  varint "$(printf %s "$2" | wc -c)"
  printf %s "$2"
}
pb_message() { # FIELD COMMAND...: the message is what the command writes
  local field=$1 file
  shift
  file=$(mktemp "$WORK/.test/pb.XXXXXX")
  "$@" >"$file"
  pb_bytes "$field" "$file"
  rm "$file"
}

onnx_dim() { # NUMBER or SYMBOL
  case $1 in
    [0-9-]*) pb_int 1 "$1" ;;
    *) pb_text 2 "$1" ;;
  esac
}
onnx_dims() {
  local dim
  for dim in "$@"; do pb_message 1 onnx_dim "$dim"; done
}
onnx_tensor_type() { # DTYPE DIM...
  pb_int 1 "$1"
  shift
  pb_message 2 onnx_dims "$@"
}
onnx_type() { pb_message 1 onnx_tensor_type "$@"; }
onnx_value() { # NAME DTYPE DIM...
  pb_text 1 "$1"
  shift
  pb_message 2 onnx_type "$@"
}
onnx_input() { pb_message 11 onnx_value "$@"; }
onnx_output() { pb_message 12 onnx_value "$@"; }
onnx_node_fields() { # OP NAME "INPUT..." "OUTPUT..."
  local name
  for name in $3; do pb_text 1 "$name"; done
  for name in $4; do pb_text 2 "$name"; done
  pb_text 3 "$2"
  pb_text 4 "$1"
}
onnx_node() { pb_message 1 onnx_node_fields "$@"; }
onnx_attribute_fields() { # NAME FIELD VALUE...: FIELD is i (an integer), ints, s (a string) or strings
  local field=$2 value
  pb_text 1 "$1"
  for value in "${@:3}"; do
    case $field in
      i) pb_int 3 "$value" ;;
      ints) pb_int 8 "$value" ;;
      s) pb_text 4 "$value" ;;
      strings) pb_text 9 "$value" ;;
    esac
  done
  case $field in
    i) pb_int 20 2 ;;
    ints) pb_int 20 7 ;;
    s) pb_int 20 3 ;;
    strings) pb_int 20 8 ;;
  esac
}
onnx_attribute() { pb_message 5 onnx_attribute_fields "$@"; } # of a node's fields
onnx_node_with_fields() {
  onnx_node_fields "${@:1:4}"
  onnx_attribute "${@:5}"
}
# A node with one attribute: OP NAME "INPUT..." "OUTPUT..." ATTRIBUTE FIELD VALUE...
onnx_node_with() { pb_message 1 onnx_node_with_fields "$@"; }
onnx_initializer_fields() { # DTYPE NAME "DIM..." FILE
  local dim
  for dim in $3; do pb_int 1 "$dim"; done
  pb_int 2 "$1"
  pb_text 8 "$2"
  pb_bytes 9 "$4"
}
onnx_floats() { pb_message 5 onnx_initializer_fields 1 "$@"; } # NAME "DIM..." FILE
onnx_int64s() { pb_message 5 onnx_initializer_fields 7 "$@"; }
onnx_entry() {
  pb_text 1 "$1"
  pb_text 2 "$2"
}
onnx_external_fields() { # NAME "DIM..." LOCATION
  local dim
  for dim in $2; do pb_int 1 "$dim"; done
  pb_int 2 1
  pb_text 8 "$1"
  pb_message 13 onnx_entry location "$3"
  pb_int 14 1
}
onnx_external() { pb_message 5 onnx_external_fields "$@"; }
onnx_opset() { pb_int 2 "$1"; }
onnx_model() { # COMMAND... that writes the graph's fields; $opset, else 13
  pb_int 1 8
  pb_text 2 by-hand
  pb_message 7 "$@"
  pb_message 8 onnx_opset "${opset:-13}"
}

# Little-endian float32 by its bits: f32 3f800000 40000000
f32() {
  local bits
  for bits in "$@"; do printf %b "\\x${bits:6:2}\\x${bits:4:2}\\x${bits:2:2}\\x${bits:0:2}"; done
}
i64() {
  local n i
  for n in "$@"; do
    for i in 0 8 16 24 32 40 48 56; do printf %b "\\x$(printf %02x $(((n >> i) & 255)))"; done
  done
}
# .npy, version 1.0: npy DESCR "SHAPE" <data, as npy '<f4' '(1, 3)'
npy() {
  local header="{'descr': '$1', 'fortran_order': False, 'shape': $2, }" size
  size=$(((10 + ${#header} + 1 + 63) / 64 * 64 - 10))
  printf '\x93NUMPY\x01\x00'
  printf %b "\\x$(printf %02x $((size & 255)))\\x$(printf %02x $((size >> 8)))"
  printf '%s%*s\n' "$header" $((size - ${#header} - 1)) ''
  cat
}

# Models of one node. relu_model "DIM..."
relu_graph() {
  onnx_node Relu activate x y
  pb_text 2 small
  onnx_input x 1 "$@"
  onnx_output y 1 "$@"
}
