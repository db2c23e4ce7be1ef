"""How many threads to run: physical cores that this process may use."""

from __future__ import annotations

import os
from pathlib import Path


def default_threads() -> int:
    """Physical cores within the affinity mask and the cgroup's CPU quota, at least 1.

    Hyper-threads share a core's vector units, and threads beyond the quota are stopped by the system in the middle of
    a step; both make a team slower than a smaller one.
    """
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = {_siblings(cpu) for cpu in cpus}
    quota = _cgroup_quota()
    return max(1, min(len(cores), int(quota) if quota is not None else len(cores)))


def _siblings(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(cpu)


def _cgroup_quota() -> float | None:
    """CPUs this process may use by its cgroup's quota; None without one."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()  # version 2
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        root = Path("/sys/fs/cgroup/cpu")  # version 1
        quota_us = int((root / "cpu.cfs_quota_us").read_text())
        return None if quota_us <= 0 else quota_us / int((root / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
