from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadInputError, BusyError, UnsupportedError
from modelc.formats import open_model
from modelc.runtime.encoder import MAX_ROWS, Encoder
from modelc.runtime.options import Options
from tests.runtime.tiny_encoder import BERT

N_CTX = 64


@pytest.fixture(scope="module")
def encoder() -> Iterator[Encoder]:
    with Encoder(open_model(BERT), Options(2)) as model:
        yield model


def texts(n: int) -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [[int(t) for t in rng.integers(0, 320, length)] for length in rng.integers(1, N_CTX + 1, n)]


def test_a_text_has_the_same_bits_alone_and_in_passes_with_others(encoder: Encoder) -> None:
    many = texts(40)
    assert sum(map(len, many)) > 2 * MAX_ROWS, "three passes"
    together = encoder.embed(many)
    assert together.shape == (40, encoder.dim)
    assert (together == np.stack([encoder.embed(ids) for ids in many])).all()


def test_threads_do_not_change_a_bit(encoder: Encoder) -> None:
    with Encoder(open_model(BERT), Options(1)) as alone:
        assert (alone.embed(texts(9)) == encoder.embed(texts(9))).all()


def test_an_embedding_is_the_mean_of_the_hidden_states(encoder: Encoder) -> None:
    ids = texts(1)[0]
    assert np.abs(encoder.embed(ids) - encoder.hidden(ids).mean(0)).max() < 1e-6


def test_strings_are_tokenized(encoder: Encoder) -> None:
    assert (encoder.embed(["ab", "c"])[0] == encoder.embed(encoder.tokenize("ab"))).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "no tokens"),
        ([], "no text"),
        ([[]], "no tokens"),
        ([320], "no such token.*got 320, expected ids below 320"),
        ([-1], "no such token"),
        ([1] * (N_CTX + 1), f"too many tokens.*expected at most {N_CTX}"),
        (["a", 1], "wrong type"),
        ([1.5], "wrong type"),
        (None, "wrong type"),
    ],
)
def test_what_is_no_text_is_refused(encoder: Encoder, given: Any, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        encoder.embed(given)


def test_an_encoder_says_what_it_can_do(encoder: Encoder) -> None:
    with pytest.raises(UnsupportedError, match=r"a sentence encoder cannot generate text; it can embed texts"):
        encoder.chat([{"role": "user", "content": "Hi"}])


def test_a_profile_names_the_instructions() -> None:
    with Encoder(open_model(BERT), Options(1)) as model:
        model.start_profile()
        model.embed([1, 2, 3])
        assert "full_attention.16" in model.profile_report()


def test_a_closed_model_says_so() -> None:
    model = Encoder(open_model(BERT), Options(1))
    model.close()
    with pytest.raises(BusyError, match="closed"):
        model.embed([1])
