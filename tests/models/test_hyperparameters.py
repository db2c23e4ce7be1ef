import pytest

from modelc.errors import BadFileError
from modelc.models.hyperparameters import Hyperparameters

KEYS = Hyperparameters({"a.n": 7, "a.x": 0.5, "a.s": "text", "a.flag": True, "a.nan": float("nan"), "n": 1}, "a.")


def test_values_are_found_behind_the_prefix() -> None:
    assert KEYS.integer("n") == 7
    assert KEYS.number("x") == 0.5
    assert KEYS.text("s") == "text"
    assert KEYS.has("n")
    assert not KEYS.has("a.n")


def test_a_whole_number_is_a_number() -> None:
    value = KEYS.number("n")
    assert value == 7.0
    assert isinstance(value, float)


def test_defaults_stand_in_for_missing_keys_only() -> None:
    assert KEYS.integer("missing", 3) == 3
    assert KEYS.number("missing", 2.5) == 2.5
    assert KEYS.text("missing", "none") == "none"
    assert KEYS.integer("n", 3) == 7


def test_a_missing_key_is_named() -> None:
    for get in (KEYS.integer, KEYS.number, KEYS.text):
        with pytest.raises(BadFileError, match=r"hyperparameter missing.*a\.missing"):
            get("missing")


@pytest.mark.parametrize("key", ["x", "s", "flag"])
def test_what_is_no_integer_is_refused(key: str) -> None:
    with pytest.raises(BadFileError, match=rf"a\.{key}.*integer"):
        KEYS.integer(key)


@pytest.mark.parametrize("key", ["s", "flag", "nan"])
def test_what_is_no_number_is_refused(key: str) -> None:
    with pytest.raises(BadFileError, match=rf"a\.{key}.*number"):
        KEYS.number(key)


def test_text_must_be_text() -> None:
    with pytest.raises(BadFileError, match=r"a\.n.*string"):
        KEYS.text("n")


def test_lists_are_checked_item_by_item() -> None:
    keys = Hyperparameters({"names": ["a", "b"], "values": [1, 0.5], "mixed": ["a", 1], "flags": [True]})
    assert keys.texts("names") == ["a", "b"]
    assert keys.numbers("values") == (1.0, 0.5)
    for key in ("mixed", "missing", "flags"):
        for get in (keys.texts, keys.numbers):
            with pytest.raises(BadFileError, match=key):
                get(key)
    with pytest.raises(BadFileError, match=r"values.*got 0\.5.*from 0\.6"):
        keys.numbers("values", low=0.6)


@pytest.mark.parametrize("limits", [{"low": 8}, {"high": 6}])
def test_limits_are_part_of_the_message(limits: dict[str, int]) -> None:
    with pytest.raises(BadFileError, match=r"a\.n.*got 7.*integer from \d+ to \d+"):
        KEYS.integer("n", **limits)
    with pytest.raises(BadFileError, match=r"a\.n.*got 7.*number from"):
        KEYS.number("n", **{name: float(value) for name, value in limits.items()})


def test_limits_themselves_are_allowed() -> None:
    assert KEYS.integer("n", low=7, high=7) == 7
    assert KEYS.number("x", low=0.5, high=0.5) == 0.5
