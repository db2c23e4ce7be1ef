import pickle

import pytest

from modelc.errors import (
    BadFileError,
    BadInputError,
    BusyError,
    ModelcError,
    NetworkError,
    NotFoundError,
    StoreError,
    UnsupportedError,
    WriteError,
    did_you_mean,
    located,
)


def test_the_message_is_what_where_got_expected_next_step() -> None:
    error = BadFileError(
        "tensors overlap", path="/m/x.gguf", tensor="a.b", offset=64, got="offset 64", expected="96", hint="try again"
    )
    assert str(error) == "tensors overlap: /m/x.gguf, tensor 'a.b', offset 64: got offset 64, expected 96; try again"


def test_absent_fields_leave_no_trace_in_the_message() -> None:
    assert str(ModelcError("it failed")) == "it failed"
    assert str(BadInputError("wrong", param="top_p")) == "wrong: 'top_p'"
    assert str(NotFoundError("no such file", path="x", hint="")) == "no such file: x"


def test_falsy_values_are_shown() -> None:
    assert str(ModelcError("wrong", offset=0, got=0, expected=False)) == "wrong: offset 0: got 0, expected False"


@pytest.mark.parametrize("text", ["a\nb", "a\r\x1b[31m", "\x00", "\udcff", "\u2028", "\u202e"])
def test_the_message_is_one_printable_line_whatever_the_fields(text: str) -> None:
    error = ModelcError(text, path=text, tensor=text, param=text, got=text, expected=text, hint=text)
    assert str(error).isprintable()
    assert str(error).encode("utf-8")


def test_long_fields_are_cut() -> None:
    assert len(str(ModelcError("long", got="x" * 1_000_000))) < 400


def test_letters_of_every_script_stay_as_they_are() -> None:
    assert str(ModelcError("wrong", tensor="Ġ日本é")) == "wrong: tensor 'Ġ日本é'"


@pytest.mark.parametrize(
    "leaf",
    [BadFileError, BadInputError, NotFoundError, UnsupportedError, BusyError, NetworkError, WriteError, StoreError],
)
def test_every_leaf_has_the_one_root(leaf: type[ModelcError]) -> None:
    assert leaf.__bases__ == (ModelcError,)


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(BadFileError("broken", path="p", offset=3, hint="again")))
    assert isinstance(error, BadFileError)
    assert str(error) == "broken: p, offset 3; again"


def test_did_you_mean_names_the_nearest_whatever_its_case() -> None:
    assert did_you_mean("LLama", ["gpt2", "llama", "bert"]) == "did you mean 'llama'?"
    assert did_you_mean("smollm", ["SmolLM2"]) == "did you mean 'SmolLM2'?"


def test_did_you_mean_is_silent_when_nothing_is_near() -> None:
    assert did_you_mean("zzz", ["llama"]) == ""
    assert did_you_mean("x", []) == ""


def test_an_error_inside_names_the_file_unless_it_names_one() -> None:
    for inner, path in (("a.gguf", "a.gguf"), (None, "b.gguf")):
        with pytest.raises(UnsupportedError) as raised, located("b.gguf"):
            raise UnsupportedError("architecture", path=inner)
        assert raised.value.path == path
    with pytest.raises(UnsupportedError) as raised, located("a.gguf", "cache/a.modelc"):
        raise UnsupportedError("architecture", path="cache/a.modelc")
    assert raised.value.path == "a.gguf"
    with pytest.raises(BadInputError) as other, located("b.gguf"):
        raise BadInputError("not for this file", param="threads")
    assert other.value.path is None
