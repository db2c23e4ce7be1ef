"""The instruction sets that kernels are built for ahead of time, and which of them a processor has.

All of them compute the same bits; a better one is quicker.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from modelc.errors import BadInputError, UnsupportedError

X86_64, AARCH64 = "x86_64", "aarch64"
MACHINES = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}  # what systems call them


@dataclass(frozen=True, slots=True)
class Isa:
    """An instruction set.

    Attributes:
        name: for users.
        machine: `x86_64` or `aarch64`.
        cpu: LLVM's processor.
        features: LLVM's names of what code may use beyond the architecture's first version.
    """

    name: str
    machine: str
    cpu: str
    features: tuple[str, ...]
    tuning: tuple[str, ...] = ()

    @property
    def llvm_features(self) -> str:
        """As LLVM and Numba take them."""
        return ",".join([*(f"+{feature}" for feature in self.features), *self.tuning])


_V2 = ("sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16")
_V3 = (*_V2, "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd")
_WIDE = ("-prefer-256-bit",)  # or LLVM cuts every vector of 16 floats into two

# Of each machine the best last.
ISAS: tuple[Isa, ...] = (
    Isa("generic", X86_64, "x86-64-v2", _V2),
    Isa("avx2", X86_64, "x86-64-v3", _V3),
    Isa("avxvnni", X86_64, "x86-64-v3", (*_V3, "avxvnni")),
    Isa("avx512", X86_64, "x86-64-v4", _V4, _WIDE),
    Isa("avx512vnni", X86_64, "x86-64-v4", (*_V4, "avx512vnni"), _WIDE),
    Isa("neon", AARCH64, "generic", ("neon",)),
    Isa("dotprod", AARCH64, "generic", ("neon", "dotprod")),
)

# What Linux calls features in /proc/cpuinfo, where it is not LLVM's name.
_LINUX_NAMES = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "avxvnni": "avx_vnni",
    "avx512vnni": "avx512_vnni",
}
_AT_HWCAP, _HWCAP_ASIMDDP = 16, 1 << 20  # of AArch64 Linux: the kernel's word on dot products; NEON is always there
# Windows: numbers for IsProcessorFeaturePresent, and the features that come with them.
_WINDOWS_FEATURES = {38: _V2, 40: _V3, 43: ("neon", "dotprod")}


def isas_of(machine: str) -> list[Isa]:
    """The instruction sets of a machine, the best last."""
    return [isa for isa in ISAS if isa.machine == machine]


def host_machine() -> str:
    """This machine: `x86_64` or `aarch64`.

    Raises:
        UnsupportedError: another one.
    """
    name = platform.machine()
    found = MACHINES.get(name.lower())
    if found is None:
        raise UnsupportedError("processor", got=name, expected=", ".join(sorted(set(MACHINES.values()))))
    return found


@cache
def host_features() -> frozenset[str]:
    """LLVM's names of the features that this processor and its system have."""
    every = {feature for isa in ISAS for feature in isa.features}
    if sys.platform == "win32":
        import ctypes

        present = ctypes.windll.kernel32.IsProcessorFeaturePresent
        return frozenset(f for number, features in _WINDOWS_FEATURES.items() if present(number) for f in features)
    if sys.platform == "darwin":
        return frozenset(("neon", "dotprod") if host_machine() == AARCH64 else _V2)
    if host_machine() == AARCH64:
        import ctypes

        asked = ctypes.CDLL(None).getauxval(_AT_HWCAP) & _HWCAP_ASIMDDP
        return frozenset(("neon", "dotprod") if asked else ("neon",))
    flags: set[str] = set()
    try:
        for line in Path("/proc/cpuinfo").read_text("ascii", "replace").splitlines():
            if line.startswith("flags"):
                flags = set(line.partition(":")[2].split())
                break
    except OSError:
        pass
    return frozenset(feature for feature in every if _LINUX_NAMES.get(feature, feature) in flags)


def choose_isa(names: Collection[str], forced: str | None = None) -> Isa:
    """The best instruction set among `names` that this processor has.

    Args:
        names: what there is code for.
        forced: the one to take, if it can be.

    Raises:
        BadInputError: `forced` is not among `names`, or this processor lacks it.
        UnsupportedError: this processor has none of them.
    """
    machine, has = host_machine(), host_features()
    candidates = [isa for isa in isas_of(machine) if isa.name in names]
    possible = [isa for isa in candidates if has.issuperset(isa.features)]
    if forced is not None:
        isa = isa_named(forced, candidates)
        if isa not in possible:
            missing = ", ".join(sorted(set(isa.features) - has))
            raise BadInputError(
                "this processor lacks it",
                param="--isa",
                got=f"{forced}, which needs {missing}",
                expected=_listed(possible),
            )
        return isa
    if not possible:
        got = f"{machine} without {', '.join(sorted(set(candidates[0].features) - has))}" if candidates else machine
        raise UnsupportedError("processor", got=got, expected=f"one with {', '.join(sorted(names))}")
    return possible[-1]


def isa_named(name: str, isas: Sequence[Isa]) -> Isa:
    """The instruction set `name` among `isas`.

    Raises:
        BadInputError: it is none of them.
    """
    isa = next((isa for isa in isas if isa.name == name), None)
    if isa is None:
        raise BadInputError("no such instruction set", param="--isa", got=name, expected=_listed(isas))
    return isa


def _listed(isas: Sequence[Isa]) -> str:
    return ", ".join(isa.name for isa in isas) or "none"
