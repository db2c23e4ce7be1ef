from pathlib import Path

import pytest

import modelc
from bench.accuracy import log_probs_at, mean_divergence, reference_cases
from tools.fetch_smollm2 import GEMMA3, models_folder


def divergence(path: Path, cases: str, activations: str) -> float:
    """Mean over all positions of the reference cases, in nats."""
    with modelc.load(path, activations=activations, max_context=2048) as model:
        return mean_divergence(reference_cases(cases), lambda ids, wanted: log_probs_at(model.logits(ids), wanted))


@pytest.mark.parametrize(("activations", "limit"), [("int8", 4e-3), ("int16", 1e-6)])
def test_probabilities_are_those_of_a_float64_forward_within(
    activations: str, limit: float, smollm2_gguf: Path
) -> None:
    assert 0 <= divergence(smollm2_gguf, "smollm2-q4_1", activations) <= limit


@pytest.mark.slow
@pytest.mark.parametrize(("activations", "limit"), [("int8", 2.8e-3), ("int16", 1e-6)])
def test_gemma_s_probabilities_are_those_of_a_float64_forward_within(activations: str, limit: float) -> None:
    path = models_folder() / GEMMA3.file_name
    if not path.is_file():
        pytest.skip(f"no {path}: python -m tools.fetch_smollm2 {models_folder()} gemma3")
    assert 0 <= divergence(path, "gemma3-q4_k_m", activations) <= limit
