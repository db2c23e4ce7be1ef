"""How many threads to run: physical cores that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

from modelc.cpu_quota import cpu_quota


def default_threads() -> int:
    """Physical cores within the affinity mask and the control group's quota, at least 1.

    Hyper-threads share a core's vector units, and threads beyond the quota are stopped by the system in the middle of
    a step; both make a team slower than a smaller one.
    """
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = {_siblings(cpu) for cpu in cpus}
    return max(1, min(len(cores), cpu_quota()))


def _siblings(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(cpu)
