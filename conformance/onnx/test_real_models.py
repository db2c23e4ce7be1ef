"""Real models against the answers of ONNX Runtime: a sentence encoder with int8 weights, and voice activity."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelc import runtime
from tools.fetch_smollm2 import MINILM_ONNX, SILERO_ONNX, FetchError, PackagedModel, fetch, models_folder

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "tests/data/onnx/expected.json").read_text("utf-8"))
LARGEST = 1e-4


def fetched(model: PackagedModel) -> Path:
    try:
        return fetch(models_folder(), model)
    except FetchError as error:
        pytest.skip(f"no model to test with: {error}")


def speech() -> Any:
    """A signal that swells and fades, 4 windows of 576 samples."""
    t = np.arange(576 * 4, dtype=np.float64)
    signal = 0.3 * np.sin(t * 0.07) * np.sin(t * 0.003) + 0.05 * np.sin(t * 0.9)
    return signal.astype(np.float32).reshape(4, 1, 576)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_voice_activity_is_that_of_onnx_runtime_over_a_whole_stream(threads: int) -> None:
    with runtime.load(fetched(SILERO_ONNX), threads=threads) as model:
        for _ in range(3):
            state = np.zeros((2, 1, 128), np.float32)
            for window, right in zip(speech(), EXPECTED["silero"], strict=True):
                found = model.infer({"input": window, "state": state, "sr": 16000})
                state = found["stateN"]
                assert abs(found["output"].item() - right["output"]) < LARGEST
                assert np.abs(state[:, 0, ::16].reshape(-1) - right["state"]).max() < LARGEST


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_hidden_states_are_those_of_onnx_runtime(threads: int) -> None:
    with runtime.load(fetched(MINILM_ONNX), threads=threads) as model:
        for _ in range(3):
            for case in EXPECTED["minilm"]:
                ids = np.array(case["input_ids"])
                feeds = {"input_ids": ids, "attention_mask": case["attention_mask"], "token_type_ids": ids * 0}
                states = model.infer(feeds)["last_hidden_state"]
                assert np.abs(states[:, :, ::48] - np.array(case["columns_by_48"])).max() < LARGEST


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit() -> None:
    ids = np.random.default_rng(0).integers(1000, 20000, (3, 70))
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": ids * 0}
    answers = []
    for threads in (1, 2, 3):
        with runtime.load(fetched(MINILM_ONNX), threads=threads) as model:
            answers += [model.infer(feeds)["last_hidden_state"] for _ in range(3)]
    for answer in answers[1:]:
        assert np.array_equal(answer, answers[0])
