"""What can be built for: operating systems and machines, and what LLVM, Zig, pip and Python call them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from modelc.bundle.isas import AARCH64, X86_64, host_machine
from modelc.errors import BadInputError, did_you_mean


@dataclass(frozen=True, slots=True)
class Target:
    """A system and a machine.

    Attributes:
        name: for users.
        machine: `x86_64` or `aarch64`.
        system: `sys.platform` there.
        triple: LLVM's and Numba's name.
        zig: Zig's name.
        library_suffix: of a shared library.
        wheels: platform tags of wheels that work there, as pip takes them.
        is_tried: whether compiled files have run there; others are built, and their libraries checked.
    """

    name: str
    machine: str
    system: str
    triple: str
    zig: str
    library_suffix: str
    wheels: tuple[str, ...]
    is_tried: bool = True

    @property
    def is_host(self) -> bool:
        """Whether this computer is one."""
        return self.system == sys.platform and self.machine == host_machine()


_GLIBC = (17, 24, 26, 27, 28, 31)  # minor versions of wheels that are taken; 2.31 is what llguidance asks for
TARGETS = (
    *(
        Target(
            f"{machine}-linux",
            machine,
            "linux",
            f"{machine}-unknown-linux-gnu",
            f"{machine}-linux-gnu.2.17",
            ".so",
            (*(f"manylinux_2_{minor}_{machine}" for minor in _GLIBC), f"manylinux2014_{machine}"),
        )
        for machine in (X86_64, AARCH64)
    ),
    Target(
        "x86_64-windows",
        X86_64,
        "win32",
        "x86_64-pc-windows-gnu",
        "x86_64-windows-gnu",
        ".dll",
        ("win_amd64",),
        is_tried=False,
    ),
    Target(
        "aarch64-macos",
        AARCH64,
        "darwin",
        "arm64-apple-macosx14.0.0",
        "aarch64-macos.14.0",
        ".dylib",
        ("macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_11_0_universal2", "macosx_10_9_universal2"),
        is_tried=False,
    ),
)
_SYSTEMS = {"linux": "linux", "windows": "win32", "win32": "win32", "macos": "darwin", "darwin": "darwin"}


def host_target() -> Target | None:
    """What this computer is; None where nothing is built for it."""
    return next((target for target in TARGETS if target.is_host), None)


def target_of(name: str) -> Target:
    """The target of a short name (`aarch64-linux`) or an LLVM triple (`aarch64-unknown-linux-gnu`).

    Raises:
        BadInputError: Nothing is built for it.
    """
    parts = name.lower().replace("arm64", AARCH64).replace("amd64", X86_64).split("-")
    for target in TARGETS:
        systems = {word for word, system in _SYSTEMS.items() if system == target.system}
        if (
            parts[0] == target.machine
            and any(part.startswith(tuple(systems)) for part in parts[1:])
            and "musl" not in name
        ):
            return target
    names = [target.name for target in TARGETS]
    raise BadInputError(
        "no such target", param="--target", got=name, expected=", ".join(names), hint=did_you_mean(name, names)
    )
