"""How many CPUs' worth of time the control group of this process may use (Linux; elsewhere as many as there are).

The scheduler stops a process that has used up its quota, spinning threads and all: 64 threads on a quota of 2 are far
slower than 2. Numba asks for the CPUs that a process may run on and knows nothing of quotas.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


@functools.cache
def cpu_quota(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """The smallest quota on the way from this process's group to the root, in whole CPUs, at least 1.

    Args:
        cgroups: Where version 2 control groups, or version 1's `cpu` controller, are mounted.
        membership: The file that names this process's groups.
    """
    quotas = [float(os.cpu_count() or 1)]
    for folder in _folders(cgroups, membership):
        quotas += _quota_of(folder)
    return max(1, int(min(quotas)))


def _folders(cgroups: Path, membership: Path) -> list[Path]:
    # Within a container the mounted tree often begins at its own group, so the root is always looked at too.
    folders = [cgroups, cgroups / "cpu"]
    try:
        lines = membership.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return folders
    for line in lines:
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        root = cgroups if controllers == "" else cgroups / "cpu"
        if controllers == "" or "cpu" in controllers.split(","):
            parts = [part for part in group.split("/") if part not in ("", "..")]
            folders += [root.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)]
    return folders


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
