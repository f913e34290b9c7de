# SPDX-License-Identifier: Apache-2.0
"""The command `cltool` of the wheel: replaces itself by the program that comes with the package."""

import os
import subprocess
import sys

from ._library import FOLDER, PROGRAM_SUFFIX


def main() -> int:
    program = str(FOLDER / f"cltool{PROGRAM_SUFFIX}")
    if not os.path.exists(program):
        sys.stderr.write(f"cltool: {program} is missing: this package was built without it\n")
        return 127
    if os.name == "posix":
        os.execv(program, ["cltool", *sys.argv[1:]])
    return subprocess.call([program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
