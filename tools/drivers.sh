#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The drivers matrix: the same checks on every OpenCL driver that this machine can run.
#
#   tools/drivers.sh [--folder FOLDER] [--passes N] [--models FOLDER] [ROW...]
#   tools/drivers.sh --list                  rows, and what each runs on
#   tools/drivers.sh --table [--folder FOLDER]
#                                            writes the results of HEAD into docs/portability.md
#
# A row is a driver: those of Debian's suites in chroots, Intel's CPU runtime of PyPI, or `here`,
# the devices that cltool chooses on this machine without a chroot (a GPU, where there is one).
# Without ROW all but `here`. Each row runs, in this order:
#
#   build     packages and a release build (once for a suite)
#   digits    examples/digits: 20 images
#   debian    ONNX's cases as the suite's libonnx-testdata has them, but for outdated ones
#   newest    the cases of the newest onnx package of PyPI; N passes (1), each with empty caches
#   selftest  every kernel that has a reference
#   models    the folder of models (../shared/models), where it is there; Oclgrind, an interpreter,
#             runs those of at most 2 GFLOP a run
#   fresh     20 starts of each of the ten smallest of them: right, and the same bits; Oclgrind
#             leaves out those of more than 100 MFLOP
#
# Results are kept in FOLDER/results/COMMIT/ROW/STEP; what is there is not run again, so a run that
# was interrupted goes on. FOLDER, by default ~/.cache/clgraph-drivers, keeps the chroots as well.
# Chroots need root, debootstrap and some minutes each. HEAD is what is built: commit first. Fails
# when a step of a row fails. Where chroots cannot be made, their rows are `not run`.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname -- "${BASH_SOURCE[0]}")/chroot.bash"
tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
steps=(build digits debian newest selftest models fresh)

# ROW SUITE ICD DEVICE [ASSIGNMENT...], a line each. ICD: the file in /etc/OpenCL/vendors; the
# device is CLG_DEVICE.
rows() {
  cat <<'ROWS'
pocl-3.1 bookworm pocl.icd cpu
pocl-6 trixie pocl.icd cpu
pocl-7 forky pocl.icd cpu
intel bookworm intel.icd cpu
rusticl-22 bookworm rusticl.icd rusticl RUSTICL_ENABLE=llvmpipe
rusticl-25 trixie rusticl.icd rusticl RUSTICL_ENABLE=llvmpipe
rusticl-26 forky rusticl.icd rusticl RUSTICL_ENABLE=llvmpipe
oclgrind bookworm oclgrind oclgrind
here - - auto
ROWS
}

usage() {
  sed -n '5,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

folder=${XDG_CACHE_HOME:-$HOME/.cache}/clgraph-drivers
models=$tree/../shared/models
passes=1
mode=run
step=
chosen=()
while [ $# -gt 0 ]; do
  case $1 in
    --folder) folder=${2:?--folder FOLDER} && shift ;;
    --models) models=${2:?--models FOLDER} && shift ;;
    --passes) passes=${2:?--passes N} && shift ;;
    --list) mode=list ;;
    --table) mode=table ;;
    --step) mode=step && step=${2:?--step STEP} && shift ;; # one step of a row, in its own process
    -*) usage ;;
    *) chosen+=("$1") ;;
  esac
  shift
done
if [ "$mode" = list ]; then
  rows | awk '{ print $1 "\t" ($2 == "-" ? "this machine" : "chroot of " $2) }'
  exit 0
fi
if [ ${#chosen[@]} -eq 0 ]; then mapfile -t chosen < <(rows | awk '$1 != "here" { print $1 }'); fi
for row in "${chosen[@]}"; do
  rows | grep -q "^$row " || { echo "drivers.sh: no row '$row'; --list shows them" >&2; exit 2; }
done
mkdir -p -- "$folder"
folder=$(cd -- "$folder" && pwd)
commit=$(git -C "$tree" rev-parse --short=12 HEAD)
results=$folder/results/$commit

# ---- environments --------------------------------------------------------------------------------

# Below /opt/clgraph a chroot has source, build, newest (cases) and models.
mounted=()
cleanup() {
  local point
  for point in "${mounted[@]}"; do umount "$point"; done
  [ ! -d "$folder/$suite" ] || chroot_unmount "$folder/$suite"
}

share() { # SUITE FROM TO: FROM is TO in the suite's chroot, read-only
  local to=$folder/$1$3
  mkdir -p "$to"
  if mountpoint -q "$to"; then
    [ ! "$2" -ef "$to" ] || return 0
    umount "$to" # of an earlier call, whose folder is gone
  fi
  mount --bind "$2" "$to"
  mounted+=("$to")
  mount -o remount,bind,ro "$to"
}

build_commands() { # SOURCE BUILD
  printf 'cmake -S "%s" -B "%s" -G Ninja -DCMAKE_BUILD_TYPE=Release' "$1" "$2"
  printf ' --log-level=WARNING >/dev/null && '
  printf 'cmake --build "%s" --target cltool example_digits' "$2"
}

# Makes the suite's chroot, copies HEAD into it, and builds that.
make_suite() { # SUITE
  local suite=$1 root=$folder/$1
  if [ ! -e "$root/etc/clgraph-drivers" ]; then
    rm -rf -- "$root"
    mkdir -p "$root"
    chroot_make "$suite" "$root"
    touch "$root/etc/clgraph-drivers"
  fi
  mount_suite "$suite"
  if [ "$(cat "$root/etc/clgraph-drivers")" != "$commit" ]; then
    rm -rf "$root/opt/clgraph/source"
    mkdir -p "$root/opt/clgraph/source"
    git -C "$tree" archive HEAD | tar -x -m -C "$root/opt/clgraph/source"
    chroot_run "$root" bash /opt/clgraph/source/tools/packages.sh install build run drivers
    chroot_run "$root" sh -c "$(build_commands /opt/clgraph/source /opt/clgraph/build)"
    echo "$commit" >"$root/etc/clgraph-drivers"
  fi
}

mount_suite() { # SUITE
  chroot_mount "$folder/$1"
  [ ! -d "$models" ] || share "$1" "$models" /opt/clgraph/models
  [ ! -d "$folder/newest" ] || share "$1" "$folder/newest" /opt/clgraph/newest
  [ ! -d "$folder/venv-intel" ] || share "$1" "$folder/venv-intel" /opt/clgraph/intel
}

# A virtual environment of this machine's Python with packages of PyPI: FOLDER/venv-NAME.
venv() { # NAME PACKAGE...
  local place=$folder/venv-$1
  shift
  [ ! -e "$place/done" ] || return 0
  python3 -m venv "$place"
  "$place/bin/pip" install --quiet "$@"
  touch "$place/done"
}

# The cases of the newest onnx package, made once: FOLDER/newest.
make_newest() {
  [ ! -e "$folder/newest/version" ] || return 0
  venv onnx onnx
  rm -rf "$folder/newest"
  "$folder/venv-onnx/bin/python" "$tree/tests/conformance/newest_onnx.py" "$folder/newest"
  "$folder/venv-onnx/bin/python" -c 'import onnx; print(onnx.__version__)' >"$folder/newest/version"
}

# Intel's CPU runtime, registered in the suite's chroot as intel.icd.
make_intel() { # SUITE
  local library
  venv intel intel-opencl-rt intel-cmplr-lib-rt
  mount_suite "$1"
  library=$(cd "$folder/venv-intel" && find . -name 'libintelocl.so*' | LC_ALL=C sort | tail -n 1)
  [ -n "$library" ] || return 1
  echo "/opt/clgraph/intel/${library#./}" >"$folder/$1/etc/OpenCL/vendors/intel.icd"
}

# ---- steps ---------------------------------------------------------------------------------------

suite='' icd='' device='' settings=() caches='' # of the row

# Runs a command where the row's driver is. The caches of a row are its own.
inside() { # COMMAND...
  local where=(env) wrapper=() vendors=()
  [ "$suite" = - ] || where=(chroot_run "$folder/$suite")
  case $icd in
    oclgrind) wrapper=(oclgrind) ;; # its library takes the loader's place
    *.icd) vendors=("OCL_ICD_VENDORS=/etc/OpenCL/vendors/$icd") ;;
  esac
  "${where[@]}" "CLTOOL=$(path_of build)/cltool" "CLG_SOURCE_DIR=$(path_of source)" \
    "CLG_DEVICE=$device" "CLG_CACHE_DIR=$caches/clgraph" "POCL_CACHE_DIR=$caches/pocl" \
    "XDG_CACHE_HOME=$caches/other" "${vendors[@]}" "${settings[@]}" "${wrapper[@]}" "$@"
}
path_of() { # NAME: of source, build, models or newest, as the row sees it
  if [ "$suite" != - ]; then echo "/opt/clgraph/$1" && return; fi
  case $1 in
    source) echo "$tree" ;;
    build) echo "$tree/build" ;;
    models) echo "$models" ;;
    newest) echo "$folder/newest" ;;
  esac
}
empty_caches() {
  local base=
  [ "$suite" = - ] || base=$folder/$suite
  rm -rf "$base$caches"
  mkdir -p "$base$caches/pocl"
}

step_build() {
  if [ "$suite" = - ]; then
    sh -c "$(build_commands "$tree" "$tree/build")"
  else
    make_suite "$suite"
    [ "$icd" != intel.icd ] || make_intel "$suite"
  fi
  inside "$(path_of build)/cltool" devices
}
step_digits() {
  # shellcheck disable=SC2016 # expanded in the row's environment
  inside sh -c '"${CLTOOL%/*}/examples/digits" "$CLG_SOURCE_DIR/examples/digits/digits.onnx" \
    "$CLG_SOURCE_DIR"/examples/digits/images/*.png'
}
# Runs `cltool verify`. A case that is refused because the driver's compiler crashes is not a
# failure.
refused="the compiler of driver '[^']*' on '[^']*' "
check_cases() { # ARGUMENT...
  local log code=0 failures
  log=$(mktemp)
  inside "$@" | tee "$log" || code=$?
  failures=$(grep '^FAIL' "$log" || true)
  rm "$log"
  if [ "$code" -eq 1 ] && [ -n "$failures" ] && ! grep -qv "$refused" <<<"$failures"; then
    code=0
  fi
  return "$code"
}

step_debian() {
  # shellcheck disable=SC2016 # expanded in the row's environment
  check_cases bash -c 'source "$CLG_SOURCE_DIR/tests/conformance/cases.bash"
    echo "outdated: ${left_out[*]}"
    "$CLTOOL" verify --list-skipped "${all[@]}"'
}
step_newest() {
  local pass code=0 cases
  make_newest
  cases=$(path_of newest)
  [ "$suite" = - ] || mount_suite "$suite"
  for ((pass = 1; pass <= passes; pass++)); do
    empty_caches
    check_cases "$(path_of build)/cltool" verify -q --tolerance "$cases/tolerance.json" \
      --list-skipped "$cases" || code=1
  done
  return "$code"
}
# Returns whether the model takes more work than an interpreter, as the row's driver may be, can do
# within hours; prints it then.
is_too_large() { # MODEL MFLOP
  local work model
  [ "$icd" = oclgrind ] || return 1
  model=$(path_of models)/$1/model.onnx
  work=$(inside "$(path_of build)/cltool" inspect "$model" 2>/dev/null </dev/null) || return 1
  work=$(sed -nE 's/^ *work +([0-9.]+ [MGT]FLOP) .*/\1/p' <<<"$work")
  awk -v n="$work" -v max="$2" 'BEGIN {
    unit = n ~ /T/ ? 1e6 : n ~ /G/ ? 1e3 : 1
    exit !(n * unit > max) }' || return 1
  echo "not run: $1 ($work on an interpreter)"
}
step_selftest() { inside "$(path_of build)/cltool" selftest --all; }
# One model after another, each with a file of what it printed: on an interpreter they take hours,
# and a step that was interrupted goes on. Models that failed (NAME.failed) are tried again.
step_models() {
  [ -d "$models" ] || return 77
  local model name log code=0 done=$results/$row/models.done
  mkdir -p "$done"
  rm -f "$done"/*.failed
  for model in "$models"/*/model.onnx; do
    name=$(basename "$(dirname "$model")")
    log=$done/$name
    if [ ! -e "$log" ]; then
      if is_too_large "$name" 2000 >"$log.failed"; then
        mv "$log.failed" "$log"
      elif check_cases "$(path_of build)/cltool" verify --list-skipped --tolerance \
        "$(path_of models)/tolerance.json" "$(path_of models)/$name" >"$log.failed"; then
        mv "$log.failed" "$log"
      else
        code=1 log=$log.failed
      fi
    fi
    grep -vE '^[0-9]+ passed' "$log" || true
  done
  awk '/^[0-9]+ passed/ { passed += $1; failed += $3; skipped += $5 }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$done"/*
  return "$code"
}
# Prints the names of the N smallest models.
smallest_models() { # N
  find "$models" -mindepth 2 -maxdepth 2 -name model.onnx -printf '%s %h\n' | sort -n |
    head -n "$1" | sed -E 's|.*/||'
}
step_fresh() {
  [ -d "$models" ] || return 77
  local name chosen=()
  while read -r name; do
    is_too_large "$name" 100 || chosen+=("$(path_of models)/$name")
  done < <(smallest_models 10)
  inside env CLG_FRESH_PROCESSES=20 \
    bash "$(path_of source)/tests/conformance/fresh_processes.sh" "${chosen[@]}"
}

# What a step printed, in a few words.
summary_of() { # STEP LOG
  case $1 in
    build)
      sed -nE 's/^ *vendor .*, driver /driver /p' "$2" | tail -n 1 | grep . || tail -n 1 "$2"
      ;;
    digits) grep -E 'images in' "$2" | tail -n 1 ;;
    fresh)
      awk '/processes/ { n += $2; wrong += $4; more += $6 > 1 }
        /^not run: / { left = left "; " $0 }
        END {
          printf "%d processes, %d wrong, %d models with different bits%s\n", n, wrong, more, left
        }' "$2"
      ;;
    selftest) tail -n 1 "$2" ;;
    *) # passes, then the cases that the driver's compiler crashes on
      {
        grep -E '^[0-9]+ passed' "$2"
        grep -E "^FAIL .*$refused" "$2" | awk '{ print "refused: " $2 }' | sort -u
        grep '^not run: ' "$2"
      } | paste -sd ';' | sed 's/;/; /g'
      ;;
  esac
}

# Each step is a process: bash ignores `set -e` in functions whose status is looked at.
run_row() { # ROW
  local row=$1 place=$results/$1 name log code seconds text status=0
  mkdir -p "$place"
  for name in "${steps[@]}"; do
    log=$place/$name.log
    if [ ! -e "$place/$name" ]; then
      code=0
      seconds=$SECONDS
      bash "${BASH_SOURCE[0]}" --folder "$folder" --models "$models" --passes "$passes" \
        --step "$name" "$row" >"$log" 2>&1 </dev/null || code=$?
      text=$(summary_of "$name" "$log")
      printf '%s\t%s\t%s\n' "$code" $((SECONDS - seconds)) "$text" >"$place/$name.new"
      mv "$place/$name.new" "$place/$name"
    fi
    IFS=$'\t' read -r code seconds text <"$place/$name"
    case $code in
      0) code=passed ;;
      77)
        code='not run'
        rm "$place/$name"
        ;;
      *) code=FAILED && status=1 ;;
    esac
    printf '%-12s %-9s %-8s %5s s  %s\n' "$row" "$name" "$code" "$seconds" "$text"
    [ "$name" != build ] || [ "$code" = passed ] || break
  done
  return $status
}

# ---- the table -----------------------------------------------------------------------------------

if [ "$mode" = table ]; then
  [ -d "$results" ] || { echo "drivers.sh: no results of $commit in $folder" >&2; exit 1; }
  cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
  {
    echo "Commit $commit, $(date -I), $cpu:"
    echo
    printf '| %s ' row driver "${steps[@]:1}"
    echo '|'
    printf '|---%.0s' row "${steps[@]}"
    echo '|'
    while read -r row _; do
      line="| $row |"
      for step in "${steps[@]}"; do
        code='' start='' text='not run'
        [ ! -e "$results/$row/$step" ] || IFS=$'\t' read -r code start text <"$results/$row/$step"
        case $code in
          '' | 77) line+=' not run |' ;;
          0) line+=" ${text#driver } ($start s) |" ;;
          *) line+=" **failed**: $text ($start s) |" ;;
        esac
      done
      echo "$line"
    done < <(rows)
  } >"$folder/table"
  awk -v table="$folder/table" '
    /<!-- drivers.sh: begin/ {
      print $0 "\n"
      while ((getline line < table) > 0) print line
      print ""
      skip = 1
    }
    /<!-- drivers.sh: end/ { skip = 0 }
    !skip' "$tree/docs/portability.md" >"$folder/portability.md"
  cat "$folder/portability.md" >"$tree/docs/portability.md"
  cat "$folder/table"
  exit 0
fi

if [ "$mode" = step ]; then
  read -r row suite icd device assignments < <(rows | grep "^${chosen[0]} ")
  read -ra settings <<<"$assignments" || true
  caches=/var/tmp/clgraph-drivers/$row
  [ "$suite" = - ] || chroot_check || exit 77
  trap cleanup EXIT
  exec 9>"$folder/$suite.lock" # mounts and the build of a suite are for one process at a time
  flock 9
  [ "$suite" = - ] || [ "$step" = build ] || mount_suite "$suite"
  "step_$step"
  exit
fi

status=0
for row in "${chosen[@]}"; do run_row "$row" || status=1; done
exit $status
