"""The comparison: all engines hold the same model, and take turns, measure by measure and round by round."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.engines import MODELC, Engine
from bench.figures import Figure
from bench.models import ModelFiles

SETTLE_S = 0.05  # an engine's threads may spin for a while after its turn
WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Measure:
    """What is asked of an engine, and how many tokens it is about."""

    name: str
    do: str
    arguments: dict[str, int]
    n_tokens: int


PREFILL = Measure("prefill 512", "prefill", {"n": 512}, 512)
DECODE_100 = Measure("decode at 100", "decode", {"context": 100, "n": 64}, 64)
DECODE_1000 = Measure("decode at 1000", "decode", {"context": 1000, "n": 64}, 64)
MEASURES = (PREFILL, DECODE_100, DECODE_1000)


@dataclass(slots=True)
class Comparison:
    """What was measured with one model and number of threads.

    Attributes:
        model: name of the model.
        threads: of each engine.
        weights_bytes: what one decoded token reads.
        speeds: tokens per second, by measure and engine.
        stream: bytes per second when the weights are only read.
    """

    model: str
    threads: int
    weights_bytes: int
    speeds: dict[str, dict[str, Figure]]
    stream: Figure

    @property
    def stream_share(self) -> Figure:
        """The bytes that modelc's decoding reads per second, over those that reading alone does."""
        decoded = self.speeds[DECODE_100.name][MODELC.name]
        return decoded.times(self.weights_bytes).over(self.stream)

    @property
    def long_context_share(self) -> Figure:
        """modelc's decoding speed at 1,000 tokens of context over that at 100."""
        return self.speeds[DECODE_1000.name][MODELC.name].over(self.speeds[DECODE_100.name][MODELC.name])


@dataclass(slots=True)
class IdleWatch:
    """How busy engines were while it was another's turn.

    Attributes:
        busy_s: processor time of each engine in others' turns.
        others_s: length of those turns.
    """

    busy_s: dict[str, float] = field(default_factory=dict)
    others_s: dict[str, float] = field(default_factory=dict)

    def note(self, engine: str, busy_s: float, others_s: float) -> None:
        """Add a turn of another engine."""
        self.busy_s[engine] = self.busy_s.get(engine, 0.0) + busy_s
        self.others_s[engine] = self.others_s.get(engine, 0.0) + others_s

    def shares(self) -> dict[str, float]:
        """Cores that each engine kept busy in others' turns; 0 for one that was idle."""
        return {name: self.busy_s[name] / self.others_s[name] for name in self.busy_s}


def compare(engines: Sequence[Engine], model: ModelFiles, threads: int, rounds: int, idle: IdleWatch) -> Comparison:
    """Measure one model with one number of threads in all engines that take it.

    Args:
        engines: running; modelc first.
        model: the model.
        threads: of each engine.
        rounds: samples of each measure.
        idle: gets the engines' processor time outside their turns.

    Raises:
        BenchError: an engine failed.
    """
    engines = [engine for engine in engines if engine.measures(model.name)]
    weights_bytes = 0
    for engine in engines:
        path = model.packed if engine.name == MODELC.name else model.gguf
        weights_bytes = engine.ask("load", model=str(path), threads=threads).get("weights_bytes", weights_bytes)
        _warm_up(engine)
    samples: dict[str, dict[str, list[float]]] = {m.name: {e.name: [] for e in engines} for m in MEASURES}
    stream = []
    for number in range(rounds):
        order = _rotated(engines, number)
        for measure in MEASURES:
            for engine in order:
                samples[measure.name][engine.name].append(_turn(engine, engines, measure, number, idle))
            if measure is DECODE_100:  # beside what it is compared with
                time.sleep(SETTLE_S)
                stream.append(engines[0].ask("stream")["bytes_per_second"])
    speeds = {m: {e: Figure(tuple(s)) for e, s in by_engine.items()} for m, by_engine in samples.items()}
    return Comparison(model.name, threads, weights_bytes, speeds, Figure(tuple(stream)))


def _warm_up(engine: Engine) -> None:
    """Everything once, in its shape, so that caches are filled and contexts are there."""
    engine.ask("prefill", **PREFILL.arguments, seed=0)
    for measure in (DECODE_100, DECODE_1000):
        engine.ask("decode", **{**measure.arguments, "n": WARM_UP_TOKENS})


def _turn(engine: Engine, engines: Sequence[Engine], measure: Measure, number: int, idle: IdleWatch) -> float:
    """Tokens per second of one measurement."""
    time.sleep(SETTLE_S)
    others = [other for other in engines if other is not engine]
    before = [other.cpu_s() for other in others]
    start = time.perf_counter()
    # each round has a prompt of its own, so that nothing can be remembered
    arguments = {"seed": number + 1} if measure.do == "prefill" else {}
    seconds = engine.ask(measure.do, **measure.arguments, **arguments)["seconds"]
    elapsed = time.perf_counter() - start
    for other, cpu_s in zip(others, before, strict=True):
        idle.note(other.name, other.cpu_s() - cpu_s, elapsed)
    return measure.n_tokens / float(seconds)


def _rotated(engines: Sequence[Engine], number: int) -> list[Engine]:
    """Another engine begins each round."""
    first = number % len(engines)
    return [*engines[first:], *engines[:first]]
