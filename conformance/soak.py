"""Serve random requests for a long time: `python -m conformance.soak --minutes 30`.

Random arrivals, lengths, shared beginnings, seeds, cancellations, full contexts that shift, a memory for keys and
values that is too small for all, speculation. Every answer must be the one that its request gets alone, no page may be
lost, and the process may not grow.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.runtime.tiny_model import Answer, audit, model_of, tokens_of

N_CTX = 512
MAX_CONTEXT = 256  # of the models whose contexts shift
MOST_LIVE = 40
LARGEST_GROWTH = 64 << 20


@dataclass(slots=True)
class Soak:
    """What was served.

    Attributes:
        answers: that ended by themselves.
        cancelled: that were cancelled.
        tokens: of all answers.
        growth: bytes that the process grew after the first tenth of the time.
    """

    answers: int = 0
    cancelled: int = 0
    tokens: int = 0
    growth: int = 0


class Soaking:
    """One kind of model under load, beside the same model that answers one request at a time."""

    def __init__(self, rng: random.Random, pages: int, **options: Any) -> None:
        self._rng = rng
        self._alone = model_of(N_CTX, **{**options, "gamma": 0})
        self._served = model_of(N_CTX, kv_memory=pages * self._alone._engine.program.page_bytes, **options)
        self._known: dict[Any, list[int]] = {}
        self._live: list[tuple[list[int], dict[str, Any], Answer]] = []
        self._beginnings = [tokens_of(50 + i, n) for i, n in enumerate((64, 100, 150))]

    def step(self, soak: Soak) -> None:
        """Some requests come, some go."""
        for _ in range(self._rng.randrange(4)):
            prompt, sampling = self._request()
            self._live.append((prompt, sampling, Answer(self._served, prompt, **sampling)))
        if self._live and self._rng.random() < 0.2:
            self._rng.choice(self._live[-4:])[2].generation.cancel()
        time.sleep(self._rng.random() * 0.05)
        while len(self._live) > MOST_LIVE:
            self._check(soak, *self._live.pop(0))

    def finish(self, soak: Soak) -> None:
        """Wait for what is left, count the pages, close."""
        for live in self._live:
            self._check(soak, *live)
        audit(self._served)
        self._served.close()
        self._alone.close()

    def _request(self) -> tuple[list[int], dict[str, Any]]:
        rng = self._rng
        beginning = rng.choice(self._beginnings)[: rng.choice((64, 90, 150))] if rng.random() < 0.6 else []
        prompt = beginning + tokens_of(rng.randrange(40), rng.randrange(1, 90))
        sampling: dict[str, Any] = {"max_tokens": rng.choice((1, 5, 30, 100, 300))}
        if rng.random() < 0.5:
            sampling |= {"temperature": 1.0, "seed": rng.randrange(3)}
        return prompt, sampling

    def _check(self, soak: Soak, prompt: list[int], sampling: dict[str, Any], answer: Answer) -> None:
        answer.wait()
        assert answer.reason != "error", answer.generation.error
        key = (tuple(prompt), tuple(sampling.items()))
        if key not in self._known:
            if len(self._known) > 1000:
                self._known.clear()
            self._known[key] = Answer(self._alone, prompt, **sampling).wait().tokens
        expected = self._known[key]
        whole = answer.reason != "cancelled"
        assert answer.tokens == (expected if whole else expected[: len(answer.tokens)]), (prompt, sampling)
        soak.answers += whole
        soak.cancelled += not whole
        soak.tokens += len(answer.tokens)


def soak(seconds: float, seed: int) -> Soak:
    """Serve for so long; raises AssertionError when an answer differs, a page is lost or the process grows."""
    rng = random.Random(seed)
    result = Soak()
    end = time.monotonic() + seconds
    settled = time.monotonic() + 0.1 * seconds
    before = None
    while time.monotonic() < end:
        options: dict[str, Any] = {"gamma": rng.choice((0, 5)), "kv": rng.choice(("f16", "f32", "int8", "mixed"))}
        if rng.random() < 0.7:
            options |= {"max_context": MAX_CONTEXT, "anchor_tokens": rng.choice((0, 4, 70))}
        soaking = Soaking(rng, rng.choice((8, 12, 30)), **options)
        until = min(end, time.monotonic() + seconds / 20)
        while time.monotonic() < until:
            soaking.step(result)
        soaking.finish(result)
        if before is None and time.monotonic() > settled:
            before = resident_bytes()
    result.growth = resident_bytes() - (before or resident_bytes())
    assert result.growth < LARGEST_GROWTH, f"the process grew by {result.growth} bytes"
    return result


def resident_bytes() -> int:
    """Memory of this process that is not a file's."""
    with Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


def main() -> None:
    """Serve, and tell."""
    parser = argparse.ArgumentParser(prog="python -m conformance.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    result = soak(60 * options.minutes, options.seed)
    print(
        f"{result.answers} answers, {result.cancelled} cancelled, {result.tokens} tokens: each as alone, no page lost"
    )
    print(f"memory grew by {result.growth / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
