"""What the figures have to reach."""

from __future__ import annotations

from dataclasses import dataclass

from bench.compare import DECODE_100, PREFILL
from bench.engines import LLAMA_CPP, OPENVINO
from bench.models import GEMMA


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound that a figure must keep.

    Attributes:
        bound: the last value that is good enough.
        at_least: True when more is better.
    """

    bound: float
    at_least: bool = True

    def verdict(self, value: float) -> str:
        """The bound, and whether `value` keeps it, for readers."""
        kept = value >= self.bound if self.at_least else value <= self.bound
        return f"{'≥' if self.at_least else '≤'} {self.bound:g} {'reached' if kept else 'MISSED'}"


# (measure, peer, model) -> modelc's speed over the peer's
SPEED_RATIOS = {
    (DECODE_100.name, LLAMA_CPP.name, "Q4_1"): Goal(4.0),
    (DECODE_100.name, LLAMA_CPP.name, "Q4_0"): Goal(3.6),
    (DECODE_100.name, LLAMA_CPP.name, "Q8_0"): Goal(2.8),
    (DECODE_100.name, LLAMA_CPP.name, GEMMA): Goal(2.5),
    (DECODE_100.name, OPENVINO.name, "Q4_1"): Goal(3.0),
    (PREFILL.name, LLAMA_CPP.name, "Q4_1"): Goal(8.0),
    (PREFILL.name, LLAMA_CPP.name, "Q4_0"): Goal(3.5),
    (PREFILL.name, LLAMA_CPP.name, "Q8_0"): Goal(4.5),
    (PREFILL.name, LLAMA_CPP.name, GEMMA): Goal(2.0),
    (PREFILL.name, OPENVINO.name, "Q4_1"): Goal(1.3),
}
STREAM_SHARE = Goal(0.85)
LONG_CONTEXT_SHARE = Goal(0.75)
FIRST_TOKEN_S = Goal(1.0, at_least=False)
HELP_S = Goal(0.25, at_least=False)
FIRST_START_S = Goal(12.0, at_least=False)
OPEN_GGUF_MS = Goal(50.0, at_least=False)
MEMORY_ABOVE_FILE_MB = Goal(250.0, at_least=False)
DIVERGENCES = {"modelc int8": Goal(4e-3, at_least=False), "modelc int16": Goal(1e-6, at_least=False)}
