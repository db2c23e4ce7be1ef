"""LangChain and lm-evaluation-harness, unchanged, against a server of a real model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.api.clients import run_client
from conformance.api.serving import serving

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
CAPITALS = {
    "France": ("Paris", "London", "Rome"),
    "Germany": ("Berlin", "Madrid", "Paris"),
    "Japan": ("Tokyo", "Seoul", "Beijing"),
    "Italy": ("Rome", "Athens", "Vienna"),
    "Spain": ("Madrid", "Lisbon", "Oslo"),
    "Norway": ("Oslo", "Bern", "Tokyo"),
    "Egypt": ("Cairo", "Tunis", "Rome"),
    "Peru": ("Lima", "Quito", "Berlin"),
}


@pytest.fixture(scope="module")
def url(smollm2_gguf: Path) -> Iterator[str]:
    with serving(smollm2_gguf) as url:
        yield url


def test_langchain(url: str) -> None:
    got = json.loads(run_client(FOLDER / "langchain_client.py", f"{url}/v1").splitlines()[-1])
    assert "Paris" in got["text"]
    assert {got["streamed"], got["async"], *got["batch"]} == {got["text"]}
    assert got["streamed_usage"] == got["usage"]
    assert set(got["call"]) == set(got["streamed_call"]) == {"city"}
    assert set(got["city"]) == set(got["city_by_call"]) == {"name", "country"}
    assert got["answered"]
    assert got["logprobs"] > 0
    assert got["completion"].startswith(" Paris")
    assert len(set(got["vectors"])) == 1


def test_lm_evaluation_harness(url: str, tmp_path: Path) -> None:
    (tmp_path / "capitals.jsonl").write_text("".join(map(_row, range(len(CAPITALS)))))
    for task in (FOLDER / "tasks").glob("*.yaml"):
        (tmp_path / task.name).write_text(task.read_text().replace("DATA", str(tmp_path / "capitals.jsonl")))
    options = f"model=any,base_url={url}/v1/completions,tokenizer_backend=remote,num_concurrent=4,max_retries=1"
    tasks = ["--tasks", "capitals,continuations,perplexity", "--include_path", tmp_path]
    where = ["--batch_size", "4", "--output_path", tmp_path / "out"]
    run_client("-m", "lm_eval", "--model", "local-completions", "--model_args", options, *tasks, *where)
    (file,) = (tmp_path / "out").rglob("results_*.json")
    results = json.loads(file.read_text())["results"]
    assert results["capitals"]["acc,none"] == 1.0
    assert results["continuations"]["exact_match,none"] >= 0.5
    assert 0.5 < results["perplexity"]["bits_per_byte,none"] < 1.5


def _row(i: int) -> str:
    country = list(CAPITALS)[i]
    right, *others = CAPITALS[country]
    others.insert(i % 3, right)
    text = f"The capital of {country} is {right}. It is a large city with a long history, and many people live there."
    row = {"country": country, "choices": [f" {city}" for city in others], "label": i % 3, "text": text}
    return json.dumps(row) + "\n"
