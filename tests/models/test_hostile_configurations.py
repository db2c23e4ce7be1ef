"""Whatever stands in a configuration, the model is lowered or refused with an error that says why."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from modelc.errors import ModelcError
from modelc.ir import Model
from modelc.models import lower
from modelc.models.to_gguf import as_gguf
from modelc.models.to_hugging_face import as_hugging_face
from modelc.program import Builder
from tests.models.checkpoints import checkpoint

VALUES: list[Any] = [0, 1, -1, 2**70, float("nan"), "x", [0.0], {"a": 1}]
ROPE_KEYS = {
    "yarn": ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor", "rope_theta"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "longrope": ("factor", "original_max_position_embeddings", "short_factor", "long_factor", "partial_rotary_factor"),
}
LONGROPE = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}


def try_everything(model: Model) -> None:
    with suppress(ModelcError):
        lower(model).program(Builder(8, 8, 1, 64))
    with suppress(ModelcError):
        as_hugging_face(as_gguf(model))


@pytest.mark.parametrize("name", ["gemma3-tiny-global", "gpt2-tiny", "phi3-tiny-longrope", "qwen3-tiny"])
def test_any_value_of_a_configuration(name: str) -> None:
    model = checkpoint(name)
    config = model.metadata["config"]
    assert isinstance(config, dict)
    for key in config:
        for value in VALUES:
            try_everything(replace(model, metadata={"config": {**config, key: value}}))


@pytest.mark.parametrize("kind", list(ROPE_KEYS))
def test_any_value_of_a_rope_scaling(kind: str) -> None:
    for key in ROPE_KEYS[kind]:
        for value in VALUES:
            scaling = {"rope_type": kind, "factor": 2.0, **(LONGROPE if kind == "longrope" else {}), key: value}
            try_everything(checkpoint("mistral-tiny", rope_parameters=scaling))


@pytest.mark.parametrize("name", ["gemma3-tiny", "mistral-tiny"])
def test_any_value_of_a_gguf_key(name: str) -> None:
    model = as_gguf(checkpoint(name))
    for key in model.metadata:
        for value in VALUES:
            try_everything(replace(model, metadata={**model.metadata, key: value}))
