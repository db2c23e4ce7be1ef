"""all-MiniLM-L6-v2: tokens and embeddings against a float64 forward, from its checkpoint and from its `.modelc`."""

import json
from pathlib import Path

import numpy as np
import pytest

import modelc
from modelc import runtime
from tests.runtime.tiny_encoder import cosine
from tools.fetch_smollm2 import MINILM, FetchError, fetch, models_folder

CASES = json.loads((Path(__file__).parents[1] / "tests/data/embeddings/minilm.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return fetch(models_folder(), MINILM).parent
    except FetchError as error:
        pytest.skip(f"no model to test with: {error}")


@pytest.mark.slow
def test_embeddings_are_those_of_the_float64_forward(folder: Path) -> None:
    with runtime.load(folder, threads=1) as model:
        together = model.embed([case["text"] for case in CASES])
        for case, vector in zip(CASES, together, strict=True):
            assert model.tokenize(case["text"]) == case["ids"]
            assert cosine(vector, case["embedding"]) >= 0.99999
            assert np.abs(vector - case["embedding"]).max() < 1e-6
            assert (model.embed(case["text"]) == vector).all(), "alone and among others"


@pytest.mark.slow
@pytest.mark.parametrize(("quantize", "least"), [(None, 0.99999), ("fp16", 0.99999), ("q8_0", 0.995)])
def test_packed_models_give_nearly_the_same(folder: Path, tmp_path: Path, quantize: str | None, least: float) -> None:
    packed = modelc.pack(folder, tmp_path / "minilm.modelc", quantize=quantize)
    with runtime.load(packed, threads=1) as model:
        for case in CASES:
            assert cosine(model.embed(case["text"]), case["embedding"]) >= least
