# SPDX-License-Identifier: Apache-2.0
"""Runs cltool on a terminal, and interrupts it once it shows a line of progress.

progress.py PATTERN CLTOOL ARGUMENT...: PATTERN is a regular expression of the line. Prints whether
it was shown, what was said after the signal, the exit code, and how long the program took to end
where that was more than it may.
"""

import os
import pty
import re
import select
import signal
import sys
import time

MOST_SECONDS = 5 * float(os.environ.get("CLG_TEST_SLOWDOWN", "1"))  # a second, on a busy machine

pattern = re.compile(sys.argv[1].encode())
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.environ["NO_COLOR"] = "1"
    os.execv(sys.argv[2], sys.argv[2:])
seen = b""
found = None
sent = 0.0
end = time.monotonic() + 60
while True:
    if time.monotonic() > end or not select.select([terminal], [], [], 60)[0]:
        os.kill(child, signal.SIGKILL)
        break
    try:
        part = os.read(terminal, 4096)
    except OSError:  # the other side is closed
        part = b""
    if not part:
        break
    seen += part
    if not found:
        found = pattern.search(seen)
        if found:
            sent = time.monotonic()
            at = len(seen)
            os.kill(child, signal.SIGINT)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
took = time.monotonic() - sent
if not found:
    print("not shown:", seen.decode(errors="replace"))
    print("exit", code)
    sys.exit()
print("shown")
after = seen[at:].decode(errors="replace").replace("\r\n", "\n")
for said in re.split(r"[\r\n]|\x1b\[K", after):
    if said.startswith("cltool: "):
        print(said)
print("exit", code)
if os.environ.get("PROGRESS_TIMES"):
    print(f"{took:.2f} s", file=sys.stderr)
if took > MOST_SECONDS:
    print(f"took {took:.1f} s to end")
