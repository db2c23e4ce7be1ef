from pathlib import Path

import pytest

from modelc.benchmark import Plan, Result, benchmark
from modelc.errors import BadInputError, UnsupportedError
from modelc.formats import open_model
from modelc.runtime.encoder import Encoder
from modelc.runtime.mlp import Mlp
from modelc.runtime.options import Options
from tests.runtime.tiny_encoder import BERT
from tests.runtime.tiny_mlp import mlp_of
from tests.runtime.tiny_model import model_of

TINY = Plan(prompt=20, generate=8, depths=(0, 30), repeat=2)


def test_mean_median_and_spread_are_those_of_the_samples() -> None:
    result = Result("pp512", 2, "tokens/s", (1.0, 2.0, 6.0))
    assert (result.mean, result.median) == (3.0, 2.0)
    assert result.spread == pytest.approx(7**0.5)
    assert Result("load", 1, "s", (4.0,)).spread == 0.0


def test_a_language_model_is_measured_as_planned() -> None:
    results = {result.test: result for result in benchmark(lambda threads: model_of(), TINY)}
    assert list(results) == [
        *("load", "first, cold", "first, warm"),
        *("pp20", "tg8", "pp20 @ d30", "tg8 @ d30"),
        "peak memory",
    ]
    assert all(sample > 0 for result in results.values() for sample in result.samples)
    assert {result.unit for result in results.values()} == {"s", "tokens/s", "MB"}
    assert all(len(result.samples) == 2 for test, result in results.items() if test != "peak memory")


def test_each_number_of_threads_is_measured() -> None:
    plan = Plan(prompt=0, generate=2, threads=(1, 2), repeat=1)
    asked: list[int] = []

    def load(threads: int) -> object:
        asked.append(threads)
        return model_of()

    list(benchmark(load, plan))  # type: ignore[arg-type]
    assert asked == [1, 1, 2, 2]  # the first time to compile what is missing


def test_a_plan_longer_than_the_context_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"the context is too short.*expected at most 255 tokens in all"):
        list(benchmark(lambda threads: model_of(), Plan(prompt=250, generate=8, repeat=1)))


def test_a_model_of_numbers_is_measured_by_latency_and_throughput() -> None:
    model = mlp_of({"layer1.weight": (8, 4), "layer1.bias": (8,), "layer2.weight": (2, 8), "layer2.bias": (2,)})
    results = list(benchmark(lambda threads: Mlp(model, Options(threads)), Plan(repeat=1, batch=4)))
    assert [(result.test, result.unit) for result in results[3:-1]] == [("infer", "ms"), ("infer x4", "inputs/s")]


def test_an_encoder_is_measured_by_latency_and_throughput() -> None:
    model = open_model(BERT)
    results = list(benchmark(lambda threads: Encoder(model, Options(threads)), Plan(prompt=7, repeat=1, batch=3)))
    assert [(result.test, result.unit) for result in results[3:-1]] == [("embed7", "ms"), ("embed7 x3", "texts/s")]


def test_a_model_that_is_not_run_is_not_measured(tmp_path: Path) -> None:
    from modelc.runtime.echo import EchoModel

    model = mlp_of({"layer1.weight": (8, 4)})
    with pytest.raises(UnsupportedError, match="no architecture that is run"):
        list(benchmark(lambda threads: EchoModel(model, 1), Plan(repeat=1)))
