# SPDX-License-Identifier: Apache-2.0
"""The CPUs that a container may use, of which drivers know nothing.

A driver for CPUs starts a thread for each CPU of the machine (or of the process's affinity). With a
quota for a few of them, all stop each time the quota is used up.
"""

import math
import os
from typing import Iterator, List, Optional

# What limits threads: PoCL from 4 on, PoCL before, Intel's driver. All read it once.
_VARIABLES = ("POCL_CPU_MAX_CU_COUNT", "POCL_MAX_PTHREAD_COUNT", "DPCPP_CPU_NUM_CUS")


def _read(*path: str) -> List[str]:
    try:
        with open(os.path.join(*path)) as file:
            return file.read().split()
    except OSError:
        return []


def _folders(root: str, path: str) -> Iterator[str]:
    """Yields the folders of a group and of those above it; a container may see its own as root."""
    while True:
        yield os.path.join(root, path.strip("/"))
        if path in ("/", ""):
            return
        path = os.path.dirname(path)


def limit(groups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> Optional[float]:
    """Returns the least quota of this process's groups, in CPUs; None: there is none."""
    found = []
    for line in _read(groups):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:  # version 2: "max 100000", "150000 100000"
            found += [_read(folder, "cpu.max") for folder in _folders(root, path)]
        elif "cpu" in controllers.split(","):
            found += [
                _read(folder, "cpu.cfs_quota_us") + _read(folder, "cpu.cfs_period_us")
                for folder in _folders(os.path.join(root, controllers), path)
            ]
    quotas = [
        int(numbers[0]) / int(numbers[1])
        for numbers in found
        if len(numbers) == 2 and all(n.isdecimal() for n in numbers) and int(numbers[1])
    ]
    return min(quotas, default=None)


def apply() -> Optional[int]:
    """Has drivers that are loaded from now on use as many threads as the quota; returns these.

    What is in the environment already stays.
    """
    quota = limit()
    if quota is None:
        return None
    n = max(1, math.ceil(quota))
    for name in _VARIABLES:
        os.environ.setdefault(name, str(n))
    return n
