"""How fast a model makes embeddings of texts, or numbers of numbers: one input alone, and a batch of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from modelc.benchmark.samples import Plan, Result
from modelc.errors import UnsupportedError

if TYPE_CHECKING:
    from modelc.runtime import LoadedModel

LEAST_S = 0.05  # a measurement repeats short calls for so long


def first_answer_s(model: LoadedModel, plan: Plan) -> float:
    """Seconds of one call with one input."""
    call = _call(model, plan, 1)
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def rates(model: LoadedModel, plan: Plan) -> Iterator[Result]:
    """Latency of one input in milliseconds, and inputs a second of a batch."""
    what, each = ("embed", "texts/s") if "embed" in model.abilities else ("infer", "inputs/s")
    size = f"{min(plan.prompt, model.n_ctx or plan.prompt)}" if what == "embed" else ""
    alone = [1000 * _seconds(_call(model, plan, 1)) for _ in range(plan.repeat)]
    yield Result(f"{what}{size}", model.n_threads, "ms", tuple(alone))
    batch = [plan.batch / _seconds(_call(model, plan, plan.batch)) for _ in range(plan.repeat)]
    yield Result(f"{what}{size} x{plan.batch}", model.n_threads, each, tuple(batch))


def _seconds(call: Callable[[], object]) -> float:
    """Seconds of one call, the mean of as many as fill the shortest time that can be measured well."""
    call()
    n_calls, began_s = 0, time.perf_counter()
    while n_calls == 0 or time.perf_counter() - began_s < LEAST_S:
        call()
        n_calls += 1
    return (time.perf_counter() - began_s) / n_calls


def _call(model: LoadedModel, plan: Plan, n_inputs: int) -> Callable[[], object]:
    """What is to be measured, its inputs ready."""
    draw = random.Random(1)
    if "embed" in model.abilities:
        length = min(max(plan.prompt, 1), model.n_ctx or plan.prompt)
        texts = [[draw.randrange(model.vocab_size) for _ in range(length)] for _ in range(n_inputs)]
        return lambda: model.embed(texts)
    if "infer" in model.abilities:
        values: Any = model.example_inputs(n_inputs)
        return lambda: model.infer(values)
    raise UnsupportedError(f"{model.kind} has nothing to measure")
