import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Modelc
from tests.runtime.tiny_model import model_of

TINY = ("--prompt", 20, "--generate", 4, "--repeat", 2)


@pytest.fixture
def packed(modelc: Modelc, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a model in the store, and a small one that is loaded in its place."""
    modelc("pack", gguf, "--name", "tiny")
    monkeypatch.setattr("modelc.cli.bench.load_model", lambda path, threads, **options: model_of())
    return "tiny"


def test_a_table_for_people(modelc: Modelc, packed: str) -> None:
    result = modelc("bench", packed, *TINY, "--threads", 1)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("tiny: llama, 75 parameters, q8_0, ")
    assert lines[2].split() == ["TEST", "THREADS", "MEAN", "±", "SPREAD", "MEDIAN", "UNIT"]
    assert [line.split("  ")[0] for line in lines[3:]] == [
        *("load", "first, cold", "first, warm", "pp20", "tg4", "peak memory")
    ]


def test_markdown_and_json_say_the_same(modelc: Modelc, packed: str) -> None:
    text = modelc("bench", packed, *TINY, "--threads", "1,2", "--markdown").out
    assert len(text.splitlines()) == 2 + 2 * 6
    assert re.search(r"^\| tiny q8_0 \| [\d.]+ kB \| 75 \| 1 \| pp20 \| [\d.]+ ± [\d.]+ \| tokens/s \|$", text, re.M)
    found = json.loads(modelc("bench", packed, *TINY, "--threads", 1, "--json").out)
    assert found["model"]["name"] == "tiny"
    rows = {row["test"]: row for row in found["results"]}
    assert set(rows["pp20"]) == {"test", "threads", "unit", "mean", "spread", "median", "samples"}
    assert len(rows["tg4"]["samples"]) == 2


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--threads", "1,x"], "not a list of numbers: '--threads': got '1,x', expected numbers from 1 to 255"),
        (["--threads", "0"], "numbers from 1 to 255"),
        (["--depth", "-1"], "numbers from 0"),
        (["--json", "--markdown"], "one form of output is enough"),
        (["--prompt", "500"], "the context is too short"),
        (["--repeat", "0"], "Must be >= 1"),
    ],
)
def test_wrong_options_are_usage_errors(modelc: Modelc, packed: str, flags: list[str], told: str) -> None:
    result = modelc("bench", packed, *flags)
    assert (result.code, result.out) == (2, "")
    assert told in result.err
