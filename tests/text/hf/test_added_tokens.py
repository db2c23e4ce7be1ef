import pytest

from modelc.errors import BadFileError
from modelc.text.hf.added_tokens import AddedToken, AddedTokens, added_tokens_of
from modelc.text.hf.part import Part
from tests.text.hf.small_json import added


def cut(text: str, *tokens: AddedToken, lower: bool = False) -> list[str | int]:
    return [piece for piece, _ in AddedTokens(tokens, str.lower if lower else None).split(text)]


def test_text_between_and_around_is_kept() -> None:
    assert cut("a<t>b", AddedToken(7, "<t>")) == ["a", 7, "b"]
    assert cut("", AddedToken(7, "<t>")) == []


def test_white_space_around_is_taken_on_the_sides_told() -> None:
    assert cut("a  <t> b", AddedToken(7, "<t>", lstrip=True)) == ["a", 7, " b"]
    assert cut("a  <t> \nb", AddedToken(7, "<t>", rstrip=True)) == ["a  ", 7, "b"]


def test_white_space_already_taken_is_not_taken_again() -> None:
    token = AddedToken(7, "<t>", lstrip=True, rstrip=True)
    assert cut("<t> <t>", token) == [7, 7]


def test_a_token_inside_of_white_space_already_taken_is_none() -> None:
    assert cut("<t>\n \nb", AddedToken(7, "<t>", rstrip=True), AddedToken(8, "\n")) == [7, "b"]


def test_a_single_word_touches_no_word_character() -> None:
    token = AddedToken(7, "cat", single_word=True)
    assert cut("cat, concat cats _cat", token) == [7, ", concat cats _cat"]


def test_text_between_tokens_is_normalized_and_tokens_are_not() -> None:
    assert cut("A<T>B<t>", AddedToken(7, "<T>"), lower=True) == ["a", 7, "b<t>"]


def test_a_normalized_token_is_looked_for_in_normal_form() -> None:
    assert cut("A<T>B<t>", AddedToken(7, "<T>", normalized=True), lower=True) == ["a", 7, "b", 7]


def test_only_what_begins_the_text_is_first() -> None:
    found = AddedTokens([AddedToken(7, "<t>"), AddedToken(8, "<n>", normalized=True)], None)
    assert list(found.split("a<n>b<t>c")) == [("a", True), (8, False), ("b", False), (7, False), ("c", False)]
    assert list(found.split("<t>a")) == [(7, True), ("a", False)]


def test_fields_and_defaults_are_read() -> None:
    root = Part({"added_tokens": [added("<s>", 1, special=True, lstrip=True), {"id": 2, "content": "x"}]}, "")
    assert added_tokens_of(root) == [
        AddedToken(1, "<s>", special=True, lstrip=True),
        AddedToken(2, "x", normalized=True),
    ]
    assert added_tokens_of(Part({}, "")) == []


@pytest.mark.parametrize("token", [-1, 1 << 40, True, "1"])
def test_an_absurd_id_is_refused(token: int) -> None:
    with pytest.raises(BadFileError, match=r"added_tokens\[0\]\.id"):
        added_tokens_of(Part({"added_tokens": [added("x", token)]}, ""))
