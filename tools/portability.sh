#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every kernel through the compilers of GPU vendors, on a machine without a GPU (packages:
# tools/packages.sh, group vendors).
#
#   tools/portability.sh [--target NAME]... [--all] [--out FILE] [--texts FOLDER] [--jobs N]
#                        [--cache FOLDER] [cl/FAMILY/FILE.cl...]
#   tools/portability.sh --targets       the targets whose compilers are installed
#
# Programs are the rows at the heads of cl/*/*.cl (tools/kernel_variants.sh); with --texts, those in
# a folder that tests/layers/opencl_texts.c filled. Marks at a file's head: `// @cpu`, its kernels
# are never given to a GPU and are left out; `// @hot KERNEL... [P_A=1] [P_B!=1]`, kernels where a
# spill fails, in programs with such parameters; `// @ptx WORD... [P_A=1]`, words that NVIDIA's
# assembly of such programs must have; `// @probe`, not compiling is an answer. `// @only WORD...`
# above a row (tools/kernel_variants.sh): for these targets alone, or those of nvidia, amd or intel.
#
# Writes a table, tab-separated: program, target, kernel, result, registers, spills, private bytes,
# local bytes, note.
#   AMD      vector registers; spills of vector registers (those of scalar ones go to vector ones,
#            see note)
#   Intel    registers of 32 bytes (64 on pvc) that a thread has; spills as the compiler counts
#            them; private bytes are a thread's, on dg2 a work-item's
#   NVIDIA   as ptxas says; without ptxas "-", and local bytes from PTX
# --cache keeps rows of what compiled, by the hash of the text, the marks, cl/common, this script
# and the compilers' versions. Results: ok; ERROR, SPILLS and LOCAL, which fail; private, a hot
# kernel with an array outside of registers; spills, not counted; left-out, for the reason in the
# note. Local bytes are a kernel's own arrays, not its __local arguments; more than 48 KiB (NVIDIA)
# or 64 KiB fail.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/..}"
export LC_ALL=C

all_targets=(gfx906 gfx90a gfx1030 gfx1100 skl tgllp dg2 pvc sm_70 sm_80)
export OPTIONS="-cl-std=CL1.2 -cl-mad-enable" # src/ocl/program_build.h
export BITCODE=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode
export LIBCLC=/usr/lib/clc/nvptx64--nvidiacl.bc

# Whether a target's compiler is here; if not, says what is missing.
is_here() { # TARGET
  local needs=() compiler=clang-15
  case $1 in
    gfx*) needs=("$BITCODE/opencl.bc") ;;
    sm_*) needs=("$LIBCLC") ;;
    *) compiler=ocloc ;;
  esac
  if ! command -v "$compiler" >/dev/null; then
    echo "$1: $compiler is not installed (tools/packages.sh install vendors)"
    return 1
  fi
  if [ ${#needs[@]} -gt 0 ] && [ ! -e "${needs[0]}" ]; then
    echo "$1: ${needs[0]} is not installed (tools/packages.sh install vendors)"
    return 1
  fi
}

usage() {
  sed -n '/^#   tools/,/^#$/s/^# //p' "$0" >&2
  exit 2
}

targets=()
files=()
out=
texts=
jobs=2
cache=
while [ $# -gt 0 ]; do
  case $1 in
    --target) targets+=("${2:?a target}") && shift ;;
    --all) targets=("${all_targets[@]}") ;;
    --out) out=${2:?a file} && shift ;;
    --texts) texts=${2:?a folder} && shift ;;
    --jobs) jobs=${2:?a number} && shift ;;
    --cache) cache=${2:?a folder} && shift ;;
    --targets)
      for target in "${all_targets[@]}"; do
        if is_here "$target" >/dev/null; then echo "$target"; fi
      done
      exit 0
      ;;
    -*) usage ;;
    *) files+=("$1") ;;
  esac
  shift
done
[ ${#targets[@]} -gt 0 ] || targets=(gfx1030 tgllp sm_70)
for target in "${targets[@]}"; do
  [[ " ${all_targets[*]} " == *" $target "* ]] || { echo "no target '$target': ${all_targets[*]}" >&2 && exit 2; }
  is_here "$target" >&2 || exit 77
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export WORK=$work
mkdir "$work/programs" "$work/rows" "$work/marks"

# ptxas of CUDA 13 knows no sm_70: the lowest it knows then, from the same PTX.
export PTXAS_LOWEST=
if command -v ptxas >/dev/null; then
  PTXAS_LOWEST=$(ptxas --help | grep -oE "'sm_[0-9]+'" | tr -d "'" | sort -t _ -k 2n | head -n 1) || PTXAS_LOWEST=
fi

# ---- one program for one target ------------------------------------------------------------------

# Resources out of what a compiler wrote, a line a kernel: kernel registers spills private local
# note
amd_rows() { # ASSEMBLY
  awk '
    /^amdhsa.kernels:/ { on = 1 }
    /^amdhsa.target:/ { on = 0 }
    !on { next }
    $1 == ".group_segment_fixed_size:" { group = $2 }
    $1 == ".name:" && /^    \.name/ { name = $2 }
    $1 == ".private_segment_fixed_size:" { private = $2 }
    $1 == ".sgpr_count:" { sgprs = $2 }
    $1 == ".sgpr_spill_count:" { sgpr_spills = $2 }
    $1 == ".vgpr_count:" { vgprs = $2 }
    $1 == ".vgpr_spill_count:" {
      printf "%s\t%s\t%s\t%s\t%s\tsgpr %s spilled %s\n", name, vgprs, $2, private, group, sgprs, sgpr_spills
    }' "$1"
}
intel_rows() { # LOG BINARY
  {
    sed -nE 's/^warning: kernel ([^ ]+) +compiled (SIMD[0-9]+) .* spilled around ([0-9]+).*/spill \1 \3/p' "$1"
    grep -aE '^( *- name:| *grf_count:| *simd_size:| *slm_size:| *usage: +(single|private)_space| *size:|kernels_misc_info:)' \
      "$2"
  } | awk '
    function row() {
      if (name != "" && name !~ /^Intel_Symbol/)
        printf "%s\t%s\t%d\t%d\t%d\tsimd %s\n", name, grf, spill[name], private, slm, simd
      name = ""; private = 0; slm = 0; buffer = 0
    }
    $1 == "spill" { spill[$2] = $3; next }
    /^kernels_misc_info:/ { row(); exit }
    $1 == "-" && $2 == "name:" { row(); name = $3 }
    $1 == "grf_count:" { grf = $2 }
    $1 == "simd_size:" { simd = $2 }
    $1 == "slm_size:" { slm = $2 }
    $1 == "usage:" { buffer = 1 }
    $1 == "size:" { if (buffer) private = $2; buffer = 0 }
    END { row() }'
}
nvidia_rows() { # PTX LOG-OF-PTXAS-OR-EMPTY
  awk '
    FNR == 1 { file++ }
    file == 1 && /\.entry / { name = $0; sub(/.*\.entry /, "", name); sub(/\(.*/, "", name); order[++n] = name }
    file == 1 && /^[\t ]*\.(visible |)?\.?shared / && match($0, /\[[0-9]+\]/) {
      shared[name] += substr($0, RSTART + 1, RLENGTH - 2) * (/\.b64/ ? 8 : /\.b32/ ? 4 : 1)
    }
    file == 2 && /Compiling entry function/ { split($0, part, "\047"); entry = part[2] }
    file == 2 && /bytes stack frame/ {
      for (i = 1; i < NF; i++) {
        if ($(i + 1) == "bytes" && $(i + 2) == "stack") private[entry] = $i
        if ($(i + 1) == "bytes" && $(i + 3) ~ /stores/) spills[entry] = $i
      }
    }
    file == 2 && /Used [0-9]+ registers/ {
      for (i = 1; i < NF; i++) {
        if ($i == "Used") registers[entry] = $(i + 1)
        if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared[entry] = $i
      }
    }
    END {
      for (i = 1; i <= n; i++) {
        name = order[i]
        known = name in registers
        printf "%s\t%s\t%s\t%s\t%d\t%s\n", name, known ? registers[name] : "-", known ? spills[name] : "-",
          known ? private[name] : "-", shared[name], known ? "" : "no ptxas"
      }
    }' "$1" "$2"
}

compile() { # TARGET PROGRAM FOLDER: leaves FOLDER/kernels; what the compiler says goes to FOLDER/log
  local target=$1 source=$WORK/programs/$2.cl folder=$3 library libraries=() arch word
  local clang=(clang-15 -x cl -w "${options[@]}" -Icl -S -o "$folder/assembly")
  case $target in
    gfx1100)
      # rocm-device-libs of Debian 12 has no constants for gfx11; those of gfx1030 serve.
      for library in opencl ocml ockl oclc_correctly_rounded_sqrt_on oclc_daz_opt_off oclc_finite_only_off \
        oclc_isa_version_1030 oclc_unsafe_math_off oclc_wavefrontsize64_off oclc_abi_version_400; do
        libraries+=(-Xclang -mlink-builtin-bitcode -Xclang "$BITCODE/$library.bc")
      done
      "${clang[@]}" -target amdgcn-amd-amdhsa -mcpu="$target" -nogpulib "${libraries[@]}" "$source" 2>"$folder/log" &&
        amd_rows "$folder/assembly" >"$folder/kernels"
      ;;
    gfx*)
      "${clang[@]}" -target amdgcn-amd-amdhsa -mcpu="$target" --rocm-device-lib-path="$BITCODE" "$source" \
        2>"$folder/log" && amd_rows "$folder/assembly" >"$folder/kernels"
      ;;
    sm_*)
      : >"$folder/ptxas"
      "${clang[@]}" -target nvptx64--nvidiacl -march="$target" -Xclang -mlink-builtin-bitcode -Xclang "$LIBCLC" \
        "$source" 2>"$folder/log" || return 1
      for word in $(marked ptx "${2%@*}" "$source"); do
        grep -qF "$word" "$folder/assembly" || { echo "error: no '$word' in the PTX" >>"$folder/log" && return 1; }
      done
      if [ -n "$PTXAS_LOWEST" ]; then
        arch=$target
        [ "${target#sm_}" -ge "${PTXAS_LOWEST#sm_}" ] || arch=$PTXAS_LOWEST
        ptxas -v -arch="$arch" "$folder/assembly" -o "$folder/binary" >"$folder/ptxas" 2>&1 ||
          { cat "$folder/ptxas" >>"$folder/log" && return 1; }
      fi
      nvidia_rows "$folder/assembly" "$folder/ptxas" >"$folder/kernels"
      ;;
    *)
      ocloc compile -device "$target" -file "$source" -options "$OPTIONS -w -Icl" -internal_options -ze-allow-zebin \
        -output_no_suffix -output binary -out_dir "$folder" >"$folder/log" 2>&1 && [ -e "$folder/binary" ] &&
        intel_rows "$folder/log" "$folder/binary" >"$folder/kernels"
      ;;
  esac
}

# What a target has not that a program is made for, in words: the library compiles such programs
# only where a device says that it can.
lacks() { # TARGET PROGRAM-FILE
  if grep -q '^// @probe' "$2"; then
    echo "a probe: $1 can not"
    return
  fi
  case $1 in
    tgllp | dg2)
      if grep -qE '^#define P_[A-Z0-9_]+ 11$|^#define P_FP64 1$' "$2"; then
        echo "no double on $1"
        return
      fi
      ;;
    sm_*)
      if grep -q 'cl_khr_fp16 : enable' "$2" && grep -q '^#define P_T 10$' "$2"; then
        echo "no half arithmetic in libclc"
        return
      fi
      if [ "${1#sm_}" -lt 80 ] && grep -q '^#define P_UNIT 1$' "$2"; then
        echo "no matrix unit of this kind before sm_80"
        return
      fi
      ;;
  esac
  return 1
}

# The words of a mark that hold for a program: the kernels that are hot, what the PTX must have.
marked() { # MARK STEM PROGRAM-FILE
  local word words=() held=()
  [ -e "$WORK/marks/$2.$1" ] || return 0
  read -ra words <"$WORK/marks/$2.$1"
  for word in "${words[@]}"; do
    case $word in
      *!=*) ! grep -qx "#define ${word%!=*} ${word#*!=}" "$3" || return 0 ;;
      *=*) grep -qx "#define ${word%=*} ${word#*=}" "$3" || return 0 ;;
      *) held+=("$word") ;;
    esac
  done
  echo "${held[*]}"
}

# The rows of the table, into $WORK/rows.
judge() { # TARGET PROGRAM KEY
  local rows=$WORK/rows/$1.$2 kept=$CACHE/$3.$1
  if [ -n "$CACHE" ] && [ -s "$kept" ]; then
    cp "$kept" "$rows" && touch "$kept"
    return
  fi
  compile_and_validate "$1" "$2"
  if [ -n "$CACHE" ] && ! grep -qP '\tERROR\t' "$rows"; then
    cp "$rows" "$kept.$$" && mv "$kept.$$" "$kept"
  fi
}
compile_and_validate() { # TARGET PROGRAM
  local target=$1 program=$2 options stem folder hot limit=65536 verdict lack
  local kernel registers spills private local_bytes note
  read -ra options <<<"$OPTIONS"
  stem=${program%@*}
  folder=$WORK/$target.$program
  case $target in sm_*) limit=49152 ;; esac
  hot=" $(marked hot "$stem" "$WORK/programs/$program.cl") "
  mkdir "$folder"
  if compile "$target" "$program" "$folder" && [ -s "$folder/kernels" ]; then
    while IFS=$'\t' read -r kernel registers spills private local_bytes note; do
      verdict=ok
      if [[ $hot == *" $kernel "* ]]; then
        note="hot $note"
        if [ "$private" != - ] && [ "$private" -gt 0 ]; then verdict=private; fi
        if [ "$spills" != - ] && [ "$spills" -gt 0 ]; then verdict=SPILLS; fi
        # clang-15 gives a kernel 128 of gfx11's registers at most: its spills say nothing of a
        # driver's compiler.
        if [ "$verdict" = SPILLS ] && [ "$target" = gfx1100 ]; then verdict=spills; fi
      fi
      if [ "$local_bytes" -gt "$limit" ]; then verdict=LOCAL; fi
      printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$program" "$target" "$kernel" "$verdict" "$registers" "$spills" \
        "$private" "$local_bytes" "$note"
    done <"$folder/kernels" >"$WORK/rows/$target.$program"
  else
    verdict=ERROR
    note=$(grep -m 1 -iE 'error|fatal|unsupported|failed' "$folder/log" | tr '\t' ' ' | cut -c 1-160) || note="no kernel"
    if lack=$(lacks "$target" "$WORK/programs/$program.cl"); then
      verdict=left-out
      note=$lack
    fi
    printf '%s\t%s\t-\t%s\t-\t-\t-\t-\t%s\n' "$program" "$target" "$verdict" "$note" >"$WORK/rows/$target.$program"
    if [ "$verdict" = ERROR ]; then
      echo "$program for $target does not compile:" >&2
      head -n 12 "$folder/log" >&2
    fi
  fi
  rm -rf "$folder"
}
export -f amd_rows intel_rows nvidia_rows compile lacks marked compile_and_validate judge

# ---- all of them ---------------------------------------------------------------------------------

for file in cl/*/*.cl; do
  stem=${file##*/}
  stem=${stem%.cl}
  for mark in hot ptx; do
    sed -nE "s#^// @$mark ##p" "$file" >"$work/marks/$stem.$mark"
    [ -s "$work/marks/$stem.$mark" ] || rm "$work/marks/$stem.$mark"
  done
  if grep -q '^// @cpu' "$file"; then touch "$work/marks/$stem.cpu"; fi
done
declare -A only=()
if [ -n "$texts" ]; then
  cp "$texts"/*.cl "$work/programs/"
else
  tools/kernel_variants.sh "$work/programs" "${files[@]}" >"$work/variants"
  while IFS=$'\t' read -r program _ _ vendor; do only[$program]=$vendor; done <"$work/variants"
fi
is_for() { # TARGET WORDS
  local vendor=intel
  case $1 in gfx*) vendor=amd ;; sm_*) vendor=nvidia ;; esac
  [[ " $2 " == *" - "* || " $2 " == *" $1 "* || " $2 " == *" $vendor "* ]]
}

export CACHE=$cache
declare -A keys=()
if [ -n "$cache" ]; then
  mkdir -p "$cache"
  find "$cache" -type f -mtime +30 -delete
  {
    [ -n "$texts" ] || cat cl/*/*.clh # texts are whole
    cat tools/portability.sh
    dpkg-query -W -f '${Package} ${Version}\n' clang-15 intel-opencl-icd libigc1 libclc-15 rocm-device-libs || true
    if command -v ptxas >/dev/null; then ptxas --version; fi
  } >"$work/world" 2>/dev/null
  world=$(sha256sum <"$work/world")
  while read -r hash path; do
    program=${path##*/}
    program=${program%.cl}
    mark=$(cat "$work/marks/${program%@*}".{hot,ptx} 2>/dev/null) || true
    keys[$program]=$(sha256sum <<<"$program $hash $world $mark")
  done < <(sha256sum "$work/programs"/*.cl)
fi
for path in "$work/programs"/*.cl; do
  program=${path##*/}
  program=${program%.cl}
  for target in "${targets[@]}"; do
    reason=
    is_for "$target" "${only[$program]:--}" || reason="for ${only[$program]} alone"
    if [ -e "$work/marks/${program%@*}.cpu" ]; then reason="for CPUs"; fi
    if [ -n "$reason" ]; then
      printf '%s\t%s\t-\tleft-out\t-\t-\t-\t-\t%s\n' "$program" "$target" "$reason" >"$work/rows/$target.$program"
    else
      key=${keys[$program]:-none}
      printf '%s\n%s\n%s\n' "$target" "$program" "${key%% *}"
    fi
  done
done >"$work/jobs"
nice xargs -r -d '\n' -P "$jobs" -n 3 bash -c 'judge "$@"' judge <"$work/jobs"

{
  printf 'program\ttarget\tkernel\tverdict\tregisters\tspills\tprivate\tlocal\tnote\n'
  find "$work/rows" -type f -print0 | xargs -0 -r cat | sort -V
} >"$work/table"
[ -z "$out" ] || cp "$work/table" "$out"
awk -F '\t' '$4 ~ /^[A-Z]+$/' "$work/table"

# A line a target.
awk -F '\t' '
  NR > 1 {
    t = $2
    if (!(t in seen)) { seen[t] = 1; order[++n] = t }
    if ($4 == "left-out") { left[t]++; next }
    if (!((t, $1) in have)) { have[t, $1] = 1; programs[t]++ }
    if ($4 == "ERROR") { errors[t]++; next }
    kernels[t]++
    if ($4 == "LOCAL") local_over[t]++
    if ($9 ~ /^hot/ && $6 + 0 > 0) hot[t]++
    if ($9 ~ /^hot/ && $6 + 0 == 0 && $7 + 0 > 0) arrays[t]++
    if ($6 + 0 > 0) spilled[t]++
    if ($5 + 0 > registers[t]) registers[t] = $5
    if ($8 + 0 > local_bytes[t]) local_bytes[t] = $8
  }
  END {
    for (i = 1; i <= n; i++) {
      t = order[i]
      printf "%s: %d programs, %d kernels, %d errors, %d hot kernels spill, %d have private arrays, %d kernels spill, at most %s registers, " \
        "%d local bytes; %d left out\n", t, programs[t], kernels[t], errors[t], hot[t],
        arrays[t], spilled[t],
        registers[t] ? registers[t] : "-", local_bytes[t], left[t]
    }
  }' "$work/table"
! grep -qP '^[^\t]*\t[^\t]*\t[^\t]*\t(ERROR|SPILLS|LOCAL)\t' "$work/table"
