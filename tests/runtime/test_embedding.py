import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadInputError, BusyError
from modelc.runtime import LanguageModel
from modelc.runtime.options import Options
from tests.models.tiny_llama import tiny_llama
from tests.runtime.tiny_model import Answer, audit, model_of, paused, tokens_of


@pytest.fixture(scope="module")
def model() -> Iterator[LanguageModel]:
    with model_of() as model:
        yield model


def test_an_embedding_is_the_last_hidden_state_of_the_last_token(model: LanguageModel) -> None:
    for n in (1, 2, 63, 64, 65, 200, model.n_ctx):
        ids = tokens_of(n, n)
        states = model.hidden(ids)
        assert states.shape == (n, 64)
        assert (model.embed(ids) == states[-1]).all()


def test_hidden_states_and_the_head_give_the_logits(model: LanguageModel) -> None:
    ids = tokens_of(1, 9)
    head = model._adapters.in_use.weights._tensors["token_embd.weight"]
    assert head.dtype.name == "f32"
    matrix = head.stored.view(np.float32).reshape(head.shape)
    assert np.abs(model.hidden(ids) @ matrix.T - model.logits(ids)).max() < 1e-4


def test_a_text_has_the_same_bits_alone_in_a_list_and_beside_answers(model: LanguageModel) -> None:
    many = [tokens_of(seed, 1 + 7 * seed) for seed in range(30)]
    alone = np.stack([model.embed(ids) for ids in many])
    answers = [Answer(model, tokens_of(99 + i, 20), max_tokens=30) for i in range(3)]
    assert (model.embed(many) == alone).all()
    for answer in answers:
        answer.wait()
    audit(model)


@pytest.mark.parametrize("weights", ["q4_1", "f16"])
def test_threads_do_not_change_a_bit(weights: str) -> None:
    found = set()
    for threads in (1, 2, 3):
        with LanguageModel(tiny_llama(weights), Options(threads)) as model:
            found.add(model.embed([[3], list(range(50))]).tobytes())
    assert len(found) == 1


def test_texts_of_a_list_are_embedded_even_when_a_context_shift_is_on() -> None:
    with model_of(max_context=64) as model:
        ids = tokens_of(1, 64)
        assert model.embed(ids).shape == (64,)
        audit(model)


def test_closing_the_model_ends_the_wait() -> None:
    model = model_of()
    errors: list[BaseException] = []

    def embed() -> None:
        try:
            model.embed([tokens_of(i, 100) for i in range(50)])
        except BusyError as error:
            errors.append(error)

    with paused(model):
        thread = threading.Thread(target=embed)
        thread.start()
        closer = threading.Thread(target=model.close)
        closer.start()
    thread.join(30)
    closer.join(30)
    assert not thread.is_alive()
    with pytest.raises(BusyError, match="closed"):
        model.embed([1])


@pytest.mark.parametrize("method", ["embed", "hidden", "logits", "generate"])
@pytest.mark.parametrize(
    "given", [[1.5], [True], None, 7, [[1], ["a", 2]], ["a", None], [256], [-1], [], b"ab", {1.0: 2}]
)
def test_what_is_no_text_is_refused(model: LanguageModel, method: str, given: Any) -> None:
    with pytest.raises(BadInputError):
        getattr(model, method)(given)


def test_a_vector_goes_through_the_layers_as_one_position(model: LanguageModel) -> None:
    embedding = model._adapters.in_use.weights._tensors["token_embd.weight"]
    row = embedding.stored.view(np.float32).reshape(embedding.shape)[17]
    expected = model.logits([17])[0]
    assert (model.infer(row) == expected).all()
    assert (model.infer([[0.5], [*row.tolist(), 9.0]])[1] == expected).all(), "longer ones are cut"
    assert (model.infer([0.5]) == model.infer([0.5] + [0.0] * 63)).all(), "shorter ones are filled with zeros"


@pytest.mark.parametrize("given", [[], "ab", None, [[]], [None], [1, [2]], {"x": [1.0]}])
def test_what_is_no_vector_is_refused(model: LanguageModel, given: Any) -> None:
    with pytest.raises(BadInputError, match=r"not a vector|rows of different"):
        model.infer(given)
