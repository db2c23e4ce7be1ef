from pathlib import Path

import pytest

import modelc
from bench.accuracy import log_probs_at, mean_divergence, reference_cases


@pytest.mark.parametrize(("activations", "limit"), [("int8", 4e-3), ("int16", 1e-6)])
def test_probabilities_are_those_of_a_float64_forward_within(
    activations: str, limit: float, smollm2_gguf: Path
) -> None:
    with modelc.load(smollm2_gguf, activations=activations) as model:
        divergence = mean_divergence(reference_cases(), lambda ids, wanted: log_probs_at(model.logits(ids), wanted))
    assert 0 <= divergence <= limit
