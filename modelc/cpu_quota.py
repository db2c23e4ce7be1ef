"""How many CPUs' worth of time the control group of this process may use (Linux; elsewhere as many as there are).

The scheduler stops a process that has used up its quota, spinning threads and all: 64 threads on a quota of 2 are far
slower than 2. Numba asks for the CPUs that a process may run on and knows nothing of quotas.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from modelc.control_groups import CGROUPS, MEMBERSHIP, group_folders


@functools.cache
def cpu_quota(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """The smallest quota on the way from this process's group to the root, in whole CPUs, at least 1.

    Args:
        cgroups: Where version 2 control groups, or version 1's `cpu` controller, are mounted.
        membership: The file that names this process's groups.
    """
    quotas = [float(os.cpu_count() or 1)]
    for folder in group_folders("cpu", cgroups, membership):
        quotas += _quota_of(folder)
    return max(1, int(min(quotas)))


def usable_cpus() -> int:
    """CPUs that this process may run on and has the quota for, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, cpu_quota())


def _quota_of(folder: Path) -> list[float]:
    """CPUs that `folder` allows: one number, or none where it sets no limit."""
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        return [] if limit in ("max", "-1") else [int(limit) / int(period)]
    except (OSError, ValueError, ZeroDivisionError):
        return []
