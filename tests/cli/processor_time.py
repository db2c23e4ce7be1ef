"""How long a command takes, in time of the processor: that of the clock depends on what else the machine does."""

from __future__ import annotations

import subprocess
import sys

import pytest


def processor_s(*tokens: str, tries: int = 5) -> float:
    """Seconds of the fastest of some tries of `modelc` with these arguments."""
    resource = pytest.importorskip("resource")
    taken = []
    for _ in range(tries):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "modelc", *tokens], capture_output=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(float(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(taken)
