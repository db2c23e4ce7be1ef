"""Measures a model: loading, the first answer, speed, memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from modelc.benchmark import text_models, vector_models
from modelc.benchmark.samples import Plan, Result
from modelc.errors import UnsupportedError

if TYPE_CHECKING:
    from modelc.runtime import LoadedModel

Loader = Callable[[int], "LoadedModel"]


def benchmark(load: Loader, plan: Plan) -> Iterator[Result]:
    """Measure a model with each number of threads.

    `load` is the time that loading takes when the kernels are compiled already; `first, cold` the time to the first
    token of the first request after it (for models without text: of the first call), `first, warm` the same for the
    same request again, whose prompt is in the prefix cache by then.

    Args:
        load: loads the model with so many threads.
        plan: what to measure.

    Yields:
        Results, as they come.

    Raises:
        BadInputError: the model's context is too short for the plan.
        UnsupportedError: the model is of a kind that computes nothing.
    """
    for n_threads in plan.threads:
        load(n_threads).close()  # compiles what is not in the cache
        loads, cold, warm = [], [], []
        for i in range(plan.repeat):
            began_s = time.perf_counter()
            model = load(n_threads)
            loads.append(time.perf_counter() - began_s)
            try:
                _check(model, plan)
                cold.append(_first_s(model, plan))
                warm.append(_first_s(model, plan))
                if i == plan.repeat - 1:
                    yield Result("load", n_threads, "s", tuple(loads))
                    yield Result("first, cold", n_threads, "s", tuple(cold))
                    yield Result("first, warm", n_threads, "s", tuple(warm))
                    yield from _rates(model, plan)
            finally:
                model.close()
        memory = peak_memory_bytes()
        if memory is not None:
            yield Result("peak memory", n_threads, "MB", (memory / 1e6,))


def peak_memory_bytes() -> int | None:
    """Most memory that this process had at a time, mapped files among it; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _check(model: LoadedModel, plan: Plan) -> None:
    if model.fallback is not None:
        hint = "see `modelc inspect`"
        raise UnsupportedError(f"the model has no architecture that is run: {model.architecture}", hint=hint)
    if "generate" in model.abilities:
        text_models.check_plan(model.as_text_model(), plan)


def _first_s(model: LoadedModel, plan: Plan) -> float:
    if "generate" in model.abilities:
        return text_models.first_token_s(model.as_text_model(), plan)
    return vector_models.first_answer_s(model, plan)


def _rates(model: LoadedModel, plan: Plan) -> Iterator[Result]:
    if "generate" in model.abilities:
        return text_models.rates(model.as_text_model(), plan)
    return vector_models.rates(model, plan)
