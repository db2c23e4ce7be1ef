"""Everything that one run of the bench found out, and its form as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.compare import Comparison
from bench.figures import Figure
from bench.startup import Memory


@dataclass(slots=True)
class Start:
    """Seconds to start, and memory; see `bench.startup`."""

    help_s: Figure
    first_token_s: Figure
    first_start_s: Figure
    open_gguf_s: Figure
    memory: Memory | None


@dataclass(slots=True)
class Results:
    """One run.

    Attributes:
        date: of the run, ISO.
        rounds: samples of each speed.
        machine: see `describe_machine`.
        versions: by name.
        details: how the engines were built or set, by engine.
        comparisons: one for each model and number of threads.
        start: what was measured of `modelc run`; None when left out.
        divergences: mean KL divergence to the float64 reference, by engine and setting.
        idle_shares: cores that an engine kept busy in others' turns.
    """

    date: str
    rounds: int
    machine: dict[str, str]
    versions: dict[str, str]
    details: dict[str, str]
    comparisons: list[Comparison] = field(default_factory=list)
    start: Start | None = None
    divergences: dict[str, float] = field(default_factory=dict)
    idle_shares: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """All of it, every sample."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Results:
        """The inverse of `to_json`."""
        fields = json.loads(text)
        comparisons = [_comparison(entry) for entry in fields.pop("comparisons")]
        start = fields.pop("start")
        return cls(**fields, comparisons=comparisons, start=None if start is None else _start(start))


def _comparison(entry: dict[str, Any]) -> Comparison:
    speeds = {m: {e: _figure(samples) for e, samples in by_engine.items()} for m, by_engine in entry["speeds"].items()}
    return Comparison(**{**entry, "speeds": speeds, "stream": _figure(entry["stream"])})


def _start(entry: dict[str, Any]) -> Start:
    memory = entry.pop("memory")
    figures = {name: _figure(samples) for name, samples in entry.items()}
    return Start(**figures, memory=None if memory is None else Memory(**memory))


def _figure(entry: dict[str, Any]) -> Figure:
    return Figure(tuple(entry["samples"]))
