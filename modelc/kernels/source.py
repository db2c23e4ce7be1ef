"""Where compiled functions come from: an interface with two implementations, `objects` and `library`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

Progress: TypeAlias = Callable[[int, int, str], None]


class KernelSource(Protocol):
    """Gives machine addresses of the functions that `catalogue` names."""

    def addresses(self, names: Sequence[str], progress: Progress | None = None) -> dict[str, int]:
        """Machine addresses by name, valid as long as this object lives.

        Args:
            names: what is wanted.
            progress: told (done, total, name) about each that has to be compiled.
        """
        ...
