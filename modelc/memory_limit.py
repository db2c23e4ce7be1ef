"""How much memory this process may use: the machine's, or what its control groups allow where that is less."""

from __future__ import annotations

import os
from pathlib import Path

from modelc.control_groups import CGROUPS, MEMBERSHIP, group_folders

UNKNOWN_BYTES = 8 << 30  # taken where the system does not tell


def memory_limit(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """The smallest limit on the way from this process's group to the root, at most the machine's memory, in bytes.

    Args:
        cgroups: Where version 2 control groups, or version 1's `memory` controller, are mounted.
        membership: The file that names this process's groups.
    """
    limits = [_physical_bytes()]
    for folder in group_folders("memory", cgroups, membership):
        for file in ("memory.max", "memory.limit_in_bytes"):
            try:
                limits.append(int((folder / file).read_text()))
            except (OSError, ValueError):  # no such file, or no limit: "max"
                continue
    return min(limits)


def _physical_bytes() -> int:
    if not hasattr(os, "sysconf"):
        return UNKNOWN_BYTES
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
