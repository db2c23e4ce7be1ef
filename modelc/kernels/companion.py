"""A second process that compiles a list of functions from its other end: the first start takes half the time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from modelc.cpu_quota import usable_cpus

LEAST = 6  # functions to compile: fewer take less time than the process does to start


@contextmanager
def companion(names: Sequence[str], folder: Path) -> Iterator[bool]:
    """While the block runs, another process compiles `names` into `folder`, the last one first.

    Yields:
        Whether it does: not for a few functions, and not where there is no second core or no second process.
    """
    process = _started(names, folder) if len(names) >= LEAST and usable_cpus() > 1 else None
    try:
        yield process is not None
    finally:
        if process is not None:
            process.terminate()
            process.wait()


def main(folder: str, *names: str) -> None:
    """Compile from the last name on, until one is there already: then the other process has come that far."""
    from modelc.kernels.objects import ObjectCache

    objects = ObjectCache(Path(folder))
    for name in reversed(names):
        if objects.has(name):
            return
        objects.addresses([name])
        if not objects.has(name):
            return  # nothing can be kept there


def _started(names: Sequence[str], folder: Path) -> subprocess.Popen[bytes] | None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-m", __name__, str(folder), *names]
    nothing = subprocess.DEVNULL
    try:
        environment = os.environ | {"PYTHONPATH": path}
        return subprocess.Popen(command, env=environment, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:
        return None


if __name__ == "__main__":
    main(*sys.argv[1:])
