"""Tiny Hugging Face checkpoints with the float64 outputs of their reference, and how near a model comes to them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from modelc.formats import open_model
from modelc.ir import Model
from tests.runtime.tiny_engine import engine_of, logits_of

HF_CASES = Path(__file__).parents[1] / "data" / "hf"


def checkpoint(name: str, **config: object) -> Model:
    """The checkpoint of that name, with other values in its configuration, or without some (None)."""
    model = open_model(HF_CASES / name)
    original = model.metadata["config"]
    assert isinstance(original, dict)
    return replace(model, metadata={**model.metadata, "config": {**original, **config}})


def largest_difference(model: Model, name: str, n_pages: int = 4) -> float:
    """Of the model's logits to those that the checkpoint `name` has, over the cases that fit into so many pages."""
    worst = []
    for case in json.loads((HF_CASES / name / "expected.json").read_text("utf-8")):
        if len(case["ids"]) <= 64 * n_pages:
            with engine_of(model, kv="f32", pages_per_slot=n_pages) as engine:
                logits = logits_of(engine, case["ids"], [len(case["ids"])])
            expected = np.array(case["values"])
            worst.append(float(np.abs(logits[-len(expected) :] - expected).max()))
    return max(worst)
