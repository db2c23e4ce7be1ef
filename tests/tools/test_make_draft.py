from pathlib import Path

import numpy as np
import pytest

from modelc import formats
from modelc.models import draft, lower
from tests.models.tiny_draft import with_table_draft
from tests.models.tiny_llama import tiny_llama
from tools import make_draft
from tools.make_draft import HELD_OUT, acceptance, main, pairs_of, questions


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.modelc"
    formats.modelc.write(tiny_llama(vocab_size=256), path)
    return path


@pytest.mark.parametrize("n", [1, 150, 500])
def test_questions_to_measure_with_are_not_among_those_to_learn_from(n: int) -> None:
    held_out, others = questions(n, seed=1)
    assert len(set(held_out)) == len(held_out) == HELD_OUT
    assert len(others) == n
    assert not set(held_out) & set(others)
    assert questions(n, seed=1) == (held_out, others)
    assert "\n" not in "".join(held_out + others)


def test_pairs_do_not_reach_from_one_sequence_into_the_next() -> None:
    assert pairs_of([[1, 2, 3], [4], [5, 6]]).tolist() == [[1, 2], [2, 3], [5, 6]]
    assert pairs_of([]).shape == (0, 2)


def test_acceptance_is_the_share_of_tokens_that_are_guessed() -> None:
    model = with_table_draft(tiny_llama(vocab_size=256), {1: 2, 2: 3})
    assert acceptance(model, [[1, 2, 3], [1, 2, 4], [2, 3], [1, 5]]) == 4 / 6
    assert acceptance(model, []) == 0


def test_the_file_has_a_draft_and_its_use_is_shown(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ANSWER_TOKENS", 20), ("MEASURED_TOKENS", 10), ("ROUNDS", 1), ("EPOCHS", 1)):
        monkeypatch.setattr(make_draft, name, value)
    output = tmp_path / "with_draft.modelc"
    assert main([str(source), str(output), "--hidden", "32", "--conversations", "5"]) == 0
    model = formats.open_model(output)
    config, weights = draft.load(model, lower(model).weights)
    assert (config.hidden_dim, config.has_embed) == (32, False)
    assert weights.matrix("draft.fc2.weight").dtype == "q8_0"
    for name, tensor in formats.open_model(source).tensors.items():
        assert np.array_equal(model.tensors[name].stored, tensor.stored)
    printed = capsys.readouterr().out
    assert "100 tokens" in printed
    assert printed.count("the draft guesses") == 2
    for way in ("no speculation", "prompt lookup", "draft"):
        assert sum(line.startswith(f"  {way} ") for line in printed.splitlines()) == 2


def test_a_file_that_is_no_model_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing.gguf"), str(tmp_path / "out.modelc")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("make_draft: ")
    assert error.count("\n") == 1
    assert "missing.gguf" in error


@pytest.mark.parametrize("arguments", [["--hidden", "48"], ["--hidden", "0"], ["--conversations", "0"]])
def test_sizes_without_meaning_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["in", "out", *arguments])
    assert "multiple of 32" in capsys.readouterr().err
