from pathlib import Path
from typing import Any

import pytest

from bench import compare as comparing
from bench.compare import IdleWatch, compare
from bench.models import ModelFiles

MODEL = ModelFiles("Q4_1", Path("model.gguf"), Path("model.modelc"))


class FakeEngine:
    """Answers at once, and writes into a log what it was asked."""

    def __init__(
        self, name: str, seconds: float, log: list[tuple[str, str, dict[str, Any]]], busy: bool = False
    ) -> None:
        self.name = name
        self._seconds = seconds
        self._log = log
        self._busy = busy
        self._cpu_s = 0.0

    def measures(self, model: str) -> bool:
        return self.name != "only F16"

    def cpu_s(self) -> float:
        self._cpu_s += 1.0 if self._busy else 0.0
        return self._cpu_s

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        self._log.append((self.name, do, arguments))
        return {"seconds": self._seconds, "weights_bytes": 1000, "bytes_per_second": 80_000.0}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    monkeypatch.setattr(comparing, "SETTLE_S", 0.0)
    return []


def run(log: list[Any], rounds: int, idle: IdleWatch | None = None, busy: bool = False) -> comparing.Comparison:
    engines: list[Any] = [
        FakeEngine("modelc", 1.0, log),
        FakeEngine("llama.cpp", 4.0, log, busy),
        FakeEngine("only F16", 1.0, log),
    ]
    return compare(engines, MODEL, 2, rounds, idle or IdleWatch())


def test_speeds_are_tokens_per_second_and_ratios_follow(log: list[Any]) -> None:
    found = run(log, rounds=3)
    assert found.speeds["prefill 512"]["modelc"].samples == (512.0,) * 3
    assert found.speeds["decode at 100"]["llama.cpp"].samples == (16.0,) * 3
    assert found.stream_share.samples == (64 * 1000 / 80_000,) * 3
    assert found.long_context_share.median == 1.0


def test_each_engine_gets_its_own_file_and_the_same_threads(log: list[Any]) -> None:
    run(log, rounds=1)
    loads = [(name, arguments) for name, do, arguments in log if do == "load"]
    assert loads == [
        ("modelc", {"model": "model.modelc", "threads": 2}),
        ("llama.cpp", {"model": "model.gguf", "threads": 2}),
    ]


def test_engines_take_turns_and_another_one_begins_each_round(log: list[Any]) -> None:
    run(log, rounds=2)
    turns = [name for name, do, arguments in log if do == "prefill" and arguments["seed"] > 0]
    assert turns == ["modelc", "llama.cpp", "llama.cpp", "modelc"]


def test_a_round_has_one_prompt_for_all_that_no_other_round_has(log: list[Any]) -> None:
    run(log, rounds=3)
    seeds = [(name, arguments["seed"]) for name, do, arguments in log if do == "prefill"]
    by_engine = {name: [seed for who, seed in seeds if who == name] for name in ("modelc", "llama.cpp")}
    assert by_engine["modelc"] == by_engine["llama.cpp"]
    assert len(set(by_engine["modelc"])) == 4  # warm-up and three rounds


def test_an_engine_that_works_in_others_turns_is_noticed(log: list[Any]) -> None:
    idle = IdleWatch()
    run(log, rounds=1, idle=idle, busy=True)
    assert idle.busy_s == {"llama.cpp": 3.0, "modelc": 0.0}  # one second in each of modelc's three turns
    assert idle.shares()["llama.cpp"] > 0.02
