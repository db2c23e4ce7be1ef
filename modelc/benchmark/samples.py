"""Measurements that were repeated, and what is said of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement.

    Attributes:
        test: what was measured: `pp512`, `tg128 @ d1024`, `load`, …
        threads: size of the team.
        unit: of the samples: `tokens/s`, `s`, `MB`, …
        samples: one for each repetition, in their order.
    """

    test: str
    threads: int
    unit: str
    samples: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Arithmetic mean."""
        return statistics.fmean(self.samples)

    @property
    def median(self) -> float:
        """Middle of the samples."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Standard deviation of the samples; 0 of one alone."""
        return statistics.stdev(self.samples) if len(self.samples) > 1 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return everything, with mean, median and spread."""
        return {
            "test": self.test,
            "threads": self.threads,
            "unit": self.unit,
            "mean": self.mean,
            "spread": self.spread,
            "median": self.median,
            "samples": list(self.samples),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        prompt: tokens of a prompt or text; 0 leaves prompts out.
        generate: tokens to generate; 0 leaves generation out.
        threads: sizes of the team.
        depths: tokens that stand before those that are measured.
        repeat: repetitions of each measurement.
        batch: inputs of one call, for models that take numbers or make embeddings.
    """

    prompt: int = 512
    generate: int = 128
    threads: tuple[int, ...] = (1,)
    depths: tuple[int, ...] = (0,)
    repeat: int = 5
    batch: int = 32
