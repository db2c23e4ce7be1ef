"""A measured figure: the samples of its rounds, and what is said of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """Samples of one measure, one a round."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.samples)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.samples)

    def over(self, other: Figure) -> Figure:
        """The ratio to `other`, round by round: what slows a whole round down does not change it."""
        return Figure(tuple(a / b for a, b in zip(self.samples, other.samples, strict=True)))

    def times(self, factor: float) -> Figure:
        """In another unit."""
        return Figure(tuple(sample * factor for sample in self.samples))
