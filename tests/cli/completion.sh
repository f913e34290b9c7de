#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What bash completes, from the words of a command line as bash breaks it at '=' and ':'.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
show completion tcsh
show completion
show completion bash --json
"$CLTOOL" completion bash >script
bash -n script || echo "the script is not valid"
touch a.onnx b.onnx 'with space.onnx' x.npy y.csv
mkdir folder
# shellcheck source=/dev/null
source ./script
cltool() { "$CLTOOL" "$@"; }

completes() { # WORD...: the last one is completed
  local offered
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _cltool 2>&1
  offered=$(printf '[%s]\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | LC_ALL=C sort | tr '\n' ' ')
  printf '%s<TAB> %s\n' "$*" "$offered"
}
completes cltool p
completes cltool --v
completes cltool run --prec
completes cltool run --precision f
completes cltool run --precision =
completes cltool run --precision = s
completes cltool run --precision = f
completes cltool run a
completes cltool run -v --strict w
completes cltool run --top 3 b
completes cltool run a.onnx -i x
completes cltool run a.onnx -i name = x
completes cltool run a.onnx --fill name = r
completes cltool run a.onnx -o ''
completes cltool run -d nv
completes cltool run --device = nv
completes cltool train a.onnx --loss m
completes cltool train a.onnx --epochs ''
completes cltool verify f
completes cltool cache warm a
completes cltool new m
completes cltool man sel
completes cltool run --no-such-option a

# The first argument of each command.
# shellcheck disable=SC2154 # the script sets it
for command in $_cltool_commands; do completes cltool "$command" ''; done

# Selectors of this machine's devices, also after the colon where bash breaks them.
first=$("$CLTOOL" devices --list | sed 's/ .*//;q')
completes cltool bench -d "${first%%:*}" | grep -qF "[$first]" || echo "no selector: $first"
completes cltool bench -d "${first%%:*}" : | grep -qF "[${first#*:}]" || echo "no part of $first"

# Every command and every option is there.
# shellcheck disable=SC2154 # of the script
for command in $_cltool_commands; do
  "$CLTOOL" "$command" --help >help || echo "$command: no help"
  grep -oE '^ +(-.,)? +--[a-z0-9-]+' help | grep -oE -- '--.*' | while IFS= read -r option; do
    [[ " $(_cltool_options "$command") " == *" $option "* ]] || echo "$command: no $option"
  done
done
finish
