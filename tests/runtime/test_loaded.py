"""What all kinds of models have in common, tried on a language model and on an MLP."""

from collections.abc import Iterator
from typing import Any

import pytest

from modelc.errors import BadFileError, BadInputError, UnsupportedError
from modelc.ir import Model
from modelc.models.registry import ARCHITECTURES
from modelc.runtime import LanguageModel
from modelc.runtime.echo import EchoModel
from modelc.runtime.encoder import Encoder
from modelc.runtime.loaded import ABILITIES, LoadedModel
from modelc.runtime.loading import KINDS, load, loaded_model
from modelc.runtime.mlp import Mlp
from modelc.runtime.options import Options
from tests.runtime.tiny_encoder import BERT
from tests.runtime.tiny_mlp import mlp_of
from tests.runtime.tiny_model import model_of


@pytest.fixture(scope="module")
def model() -> Iterator[LanguageModel]:
    with model_of() as model:
        yield model


@pytest.mark.parametrize("kind", [LanguageModel, Encoder, Mlp, EchoModel])
def test_a_kind_overrides_what_it_says_it_can_do(kind: type[LoadedModel]) -> None:
    methods = {"generate": "submit", "profile": "start_profile", "adapt": "load_loras"}
    for ability in ABILITIES:
        name = methods.get(ability, ability)
        overridden = getattr(kind, name, None) is not getattr(LoadedModel, name, None)
        assert overridden == (ability in kind.abilities), ability


def test_every_architecture_is_of_a_kind() -> None:
    assert {architecture.kind for architecture in ARCHITECTURES.values()} == set(KINDS)


def test_a_model_becomes_what_its_architecture_says() -> None:
    with load(BERT, threads=1) as encoder, loaded_model(mlp_of({"weight": (2, 3)}), Options(1)) as mlp:
        assert (type(encoder), type(mlp)) == (Encoder, Mlp)
        assert (encoder.architecture, mlp.architecture) == ("bert", "mlp")
        assert (encoder.n_ctx, mlp.n_ctx) == (64, None)
        assert (mlp.total_params, mlp.total_bytes, mlp.tensor_names) == (6, 24, ["weight"])
        assert mlp.tokenize("ab") == [97, 98]
        assert mlp.detokenize([97]) == "a"
        assert mlp.counters.steps == 0
        with pytest.raises(UnsupportedError, match="an MLP cannot generate text"):
            mlp.as_text_model()
        with pytest.raises(UnsupportedError, match="an MLP cannot embed texts"):
            mlp.require("embed")
        mlp.require("infer")


def test_an_architecture_without_its_tensors_is_an_error_and_no_echo() -> None:
    source = mlp_of({"a.b": (4, 4)})
    with pytest.raises(BadFileError, match="hyperparameter missing"):
        loaded_model(Model("m", "llama", "gguf", {}, source.tensors), Options(1))


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("tokenize", 5),
        ("tokenize", None),
        ("tokenize", b"a"),
        ("detokenize", "ab"),
        ("detokenize", [1.5]),
        ("detokenize", None),
        ("chat", "hi"),
        ("chat", None),
        ("chat", [1]),
        ("chat", {"role": "user", "content": "x"}),
        ("chat", []),
    ],
)
def test_an_argument_of_another_type_is_refused(model: LanguageModel, method: str, given: Any) -> None:
    with pytest.raises(BadInputError):
        getattr(model, method)(given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temprature": 1.0}, "no such option: 'temprature'; did you mean 'temperature'"),
        ({"max_tokens": 1.5}, "wrong type: 'max_tokens'"),
        ({"stop": 5}, "wrong type: 'stop'"),
        ({"stop": ["a", 1]}, "wrong type: 'stop'"),
        ({"seed": "a"}, "wrong type: 'seed'"),
        ({"logit_bias": [1]}, "wrong type: 'logit_bias'"),
        ({"logit_bias": {"a": 1}}, "wrong type: 'logit_bias'"),
        ({"logit_bias": {1: "x"}}, "wrong type: 'logit_bias'"),
    ],
)
def test_an_option_of_another_type_is_named(model: LanguageModel, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        model.generate("a", **options)


@pytest.mark.parametrize(
    "options", [{"threads": "a"}, {"threads": 0}, {"threads": 1.5}, {"max_context": "a"}, {"gamma": 1.5}]
)
def test_a_choice_of_another_type_is_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(BadInputError, match=rf"out of range: '{name}'.*expected an integer from"):
        load(BERT, **options)


def test_anchors_of_a_context_that_drops_nothing_are_refused() -> None:
    with pytest.raises(BadInputError, match="without max_context: 'anchor_tokens': got 4; set --max-context"):
        load(BERT, anchor_tokens=4)
