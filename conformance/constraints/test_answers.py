"""Three hundred constraints with a real model, at a temperature at which it says anything."""

from pathlib import Path

import pytest

from conformance.constraints.answers import run, summary

pytestmark = pytest.mark.slow


def test_every_answer_matches_or_begins_a_match_or_was_refused(smollm2_gguf: Path) -> None:
    outcomes = run(smollm2_gguf)
    report = summary(outcomes)
    assert len(outcomes) >= 300
    wrong = [outcome for outcome in outcomes if outcome.fault is not None and not outcome.reason.startswith("refused")]
    assert not wrong, report
    assert not [outcome for outcome in outcomes if outcome.reason == "error"], report
    assert sum(outcome.reason == "stop" for outcome in outcomes) > 150, report
    assert max(outcome.compile_s for outcome in outcomes) < 5, report
