"""The C++ library that NumPy needs and small systems lack: this computer's own, taken along."""

from __future__ import annotations

from pathlib import Path

NEEDED = ("libgcc_s.so.1", "libstdc++.so.6")
FOLDER = "fallback/"  # see boot/extensions.py


def cpp_libraries() -> dict[str, bytes]:
    """The libraries that this process has loaded, by where a compiled file keeps them; none outside Linux."""
    import numpy as np

    assert np.__version__, "NumPy has loaded them"
    found: dict[str, bytes] = {}
    try:
        maps = Path("/proc/self/maps").read_text("utf-8", "surrogateescape")
    except OSError:
        return {}
    for line in maps.splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        for name in NEEDED:
            if path.name.startswith(name) and path.is_file():
                found[FOLDER + name] = path.read_bytes()
    return found
