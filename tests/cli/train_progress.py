# SPDX-License-Identifier: Apache-2.0
"""Starts a training on a terminal, and interrupts it once it has shown its progress.

train_progress.py CLTOOL ARGUMENT...
"""

import os
import pty
import re
import signal
import sys

LINE = re.compile(
    rb"epoch \d+  step \d+/\d+  loss [0-9.e+-]+ \(\d+\.\d %\)  rate [0-9.e+-]+  \d+ rows/s  "
    rb"\d+(:[0-5]\d)?:[0-5]\d left"
)

child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
found = None
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:  # the other side is closed
        part = b""
    if not part:
        break
    seen = (seen + part)[-65536:]
    if not found:
        found = LINE.search(seen)
        if found:
            os.kill(child, signal.SIGINT)
status = os.waitpid(child, 0)[1]
print("progress is shown" if found else seen.decode(errors="replace"))
print("exit", os.waitstatus_to_exitcode(status))
