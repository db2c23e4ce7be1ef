"""All node cases of the `onnx` package: none may be answered wrongly. `python -m conformance.onnx` prints a report."""

import warnings
from collections import Counter

import pytest

from conformance.onnx.cases import node_cases, outcomes
from modelc.onnx.machine import Machine

LEAST_RIGHT = 0.98  # of the cases of ONNX's own domain


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_case_is_right_or_refused(n_threads: int) -> None:
    machine = Machine(n_threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own, about its expected values
        found = list(outcomes(node_cases(), machine))
    machine.close()
    assert [outcome for outcome in found if outcome.status not in ("right", "unsupported")] == []
    counts = Counter(outcome.status for outcome in found if not outcome.domain)
    assert counts["right"] >= LEAST_RIGHT * counts.total()
