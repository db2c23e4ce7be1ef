"""The machine and the versions that figures belong to; nothing that tells one machine of its kind from another."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

SIMD = {  # kernel's flag -> name, best first
    "avx512_vnni": "AVX-512 VNNI",
    "avx512f": "AVX-512",
    "avx_vnni": "AVX-VNNI",
    "avx2": "AVX2",
    "asimddp": "NEON with dot product",
    "asimd": "NEON",
}


def describe_machine() -> dict[str, str]:
    """Return `cpu`, `cores`, `cache`, `memory` and `system`, each a text for readers."""
    entries = _cpu_entries()
    flags = entries.get("flags", entries.get("Features", "")).split()
    simd = next((name for flag, name in SIMD.items() if flag in flags), "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    model = entries.get("model name") or platform.processor() or platform.machine()
    family = f" (family {entries['cpu family']}, model {entries['model']})" if "cpu family" in entries else ""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": f"{model}{family}{', ' + simd if simd else ''}",
        "cores": str(cores),
        "cache": _last_level_cache(),
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "system": f"{platform.system()} on {platform.machine()}",
    }


def own_versions() -> dict[str, str]:
    """Versions of what modelc computes with."""
    packages = {name: importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")}
    return {"Python": platform.python_version(), **packages}


def _cpu_entries() -> dict[str, str]:
    """The first processor's entries in /proc/cpuinfo; empty where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _last_level_cache() -> str:
    sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    return (sizes[-1] / "size").read_text("ascii").strip() if sizes else "unknown"
