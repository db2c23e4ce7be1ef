import logging

import numpy as np
import pytest

from modelc.errors import BadInputError
from modelc.ir import Model
from modelc.runtime.echo import EchoModel
from modelc.runtime.loading import loaded_model
from modelc.runtime.options import Options
from tests.runtime.tiny_mlp import mlp_of


def strange() -> Model:
    source = mlp_of({"a.b": (4, 4)})
    return Model("strange", "mamba", source.source_format, {}, source.tensors)


@pytest.fixture
def model() -> EchoModel:
    return EchoModel(strange(), 1)


def test_a_model_of_an_unknown_architecture_is_loaded_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), loaded_model(strange(), Options(1)) as model:
        assert model.generate("a") == "a"
        assert model.generate("b") == "b"
    assert [record.getMessage() for record in caplog.records] == [
        "the architecture 'mamba' of strange cannot be run: every answer is its input"
    ]
    assert model.fallback == "echo"


@pytest.mark.parametrize("text", ["Hello", "héllo <b>\n ☃", " \x00"])
def test_a_prompt_comes_back_unchanged_in_one_piece(model: EchoModel, text: str) -> None:
    assert list(model.stream(text, max_tokens=1, seed=4)) == [text]


def test_a_conversation_gives_the_user_s_last_message(model: EchoModel) -> None:
    messages = [{"role": r, "content": c} for r, c in (("user", "one"), ("user", "two"), ("assistant", "three"))]
    assert model.chat(messages) == "two"
    assert model.chat([{"role": "system", "content": "only"}]) == "only"
    with pytest.raises(BadInputError, match="no message"):
        model.chat([])


def test_embeddings_are_token_ids(model: EchoModel) -> None:
    assert model.embed("ab").tolist() == [97.0, 98.0]
    assert [vector.tolist() for vector in model.embed(["ab", [5]])] == [[97.0, 98.0], [5.0]]


def test_numbers_come_back_unchanged(model: EchoModel) -> None:
    assert model.infer([0.1, 2]) == [0.1, 2]
    assert model.infer([[1], [2, 3]]) == [[1], [2, 3]]
    with pytest.raises(BadInputError, match="not a vector"):
        model.infer(["a"])


def test_an_empty_prompt_is_refused(model: EchoModel) -> None:
    with pytest.raises(BadInputError, match="no tokens"):
        model.generate("")
    assert np.isfinite(model.embed("x")).all()
