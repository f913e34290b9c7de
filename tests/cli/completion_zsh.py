# SPDX-License-Identifier: Apache-2.0
"""Completes command lines as zsh does on a terminal, and prints what they become.

completion_zsh.py FOLDER PATH LINE...: FOLDER has _cltool, PATH is the folder of cltool
"""

import os
import pty
import select
import sys
import time

RC = """
unset HISTFILE
PS1='> '
path=({bin} $path)
fpath=({folder} $fpath)
autoload -U compinit
compinit -u -d {folder}/.zcompdump
report() {{ print -r -- "$BUFFER" >> {folder}/buffer; BUFFER= }}
zle -N report
bindkey '^G' report
print ready >> {folder}/buffer
"""


def main(folder, bin, lines):
    with open(os.path.join(folder, ".zshrc"), "w") as rc:
        rc.write(RC.format(folder=folder, bin=bin))
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(ZDOTDIR=folder, TERM="xterm")
        os.execvp("zsh", ["zsh", "-d", "-i"])
    seen = b""

    def results(n):
        """Returns the first n lines of the file, once it has them."""
        nonlocal seen
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                seen += os.read(terminal, 4096)
            try:
                with open(os.path.join(folder, "buffer")) as file:
                    found = file.read().splitlines()
            except FileNotFoundError:
                found = []
            if len(found) >= n:
                return found
        sys.exit("zsh does not answer:\n" + seen.decode(errors="replace"))

    results(1)
    for i, line in enumerate(lines):
        os.write(terminal, line.encode() + b"\t\x07")
        print(f"{line}<TAB>\n{results(i + 2)[-1]}")
    os.write(terminal, b"exit\n")
    while True:
        try:
            if not os.read(terminal, 4096):
                break
        except OSError:  # the other side is closed
            break
    os.waitpid(child, 0)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
