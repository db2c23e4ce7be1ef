"""The C++ library that NumPy needs and small systems lack: this computer's own, taken along."""

from __future__ import annotations

from modelc.bundle.boot.libraries import FALLBACK
from modelc.bundle.loaded import loaded_library

NEEDED = ("libgcc_s.so.1", "libstdc++.so.6")


def cpp_libraries() -> dict[str, bytes]:
    """The libraries that this process has loaded, by where a compiled file keeps them; none outside Linux."""
    import numpy as np

    assert np.__version__, "NumPy has loaded them"
    found = {FALLBACK + name: loaded_library(name) for name in NEEDED}
    return {place: content for place, content in found.items() if content is not None}
