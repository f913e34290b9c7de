#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Man pages: the source of one, no warnings in any, all options in each, and what is installed.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
command -v man >/dev/null && command -v groff >/dev/null || exit 77
export MANWIDTH=100 LC_ALL=C.UTF-8
show man rnu
show man --json

version() { sed -E 's/[0-9]+\.[0-9]+\.[0-9]+/VERSION/'; }
show version -- man
show version -- man cache
show version -- man new
"$CLTOOL" completion bash >script
# shellcheck source=/dev/null
source ./script
# shellcheck disable=SC2154 # of the script
for command in '' $_cltool_commands; do
  "$CLTOOL" man ${command:+"$command"} >page.1 || echo "no page of '$command'"
  man --warnings -l page.1 2>&1 >text | sed "s/^/$command: /"
  if command -v mandoc >/dev/null; then # the pages have no date: what cltool prints never changes
    mandoc -T lint -W warning page.1 | grep -v 'missing date' | sed "s/^/$command: /"
  fi
  [ -z "$command" ] && continue
  "$CLTOOL" "$command" --help | grep -oE '^ +(-.,)? +--[a-z0-9-]+' | grep -oE -- '--.*' |
    while IFS= read -r option; do grep -qe "$option" text || echo "$command: no $option"; done
done

# The build's pages and scripts are those that cltool prints.
if [ -d "$CLG_BUILD_DIR/share/man" ]; then
  cmake --install "$CLG_BUILD_DIR" --component manual --prefix "$WORK/prefix" >install.log 2>&1 ||
    cat install.log
  "$CLTOOL" man run | cmp - prefix/share/man/man1/cltool-run.1
  cmp script prefix/share/bash-completion/completions/cltool
  "$CLTOOL" completion zsh | cmp - prefix/share/zsh/site-functions/_cltool
  "$CLTOOL" completion fish | cmp - prefix/share/fish/vendor_completions.d/cltool.fish
  for command in $_cltool_commands; do
    [ -f "prefix/share/man/man1/cltool-$command.1" ] || echo "cltool-$command.1 is not installed"
  done
fi
finish
