from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text.hf.part import Part
from modelc.text.hf.splitters import Words, words_of


def build(kind: str, **fields: Any) -> Words:
    return words_of(Part({"type": kind, **fields}, "pre_tokenizer"))


def split(text: str, kind: str, **fields: Any) -> list[str]:
    found = build(kind, **fields)
    return [found.spell(word) for word in found.split(text, True)]


def test_without_one_the_text_is_one_word() -> None:
    assert words_of(None).split("a b", True) == ["a b"]


@pytest.mark.parametrize(
    ("behavior", "words"),
    [
        ("Removed", ["a", "b"]),
        ("Isolated", ["a", "-", "-", "b", "-"]),
        ("Contiguous", ["a", "--", "b", "-"]),
        ("MergedWithPrevious", ["a-", "-", "b-"]),
        ("MergedWithNext", ["a", "-", "-b", "-"]),
    ],
)
def test_split_does_with_its_matches_as_told(behavior: str, words: list[str]) -> None:
    assert split("a--b-", "Split", pattern={"String": "-"}, behavior=behavior) == words


def test_a_long_run_of_matches_takes_no_longer_than_its_length() -> None:
    pattern = {"Regex": "[0-9]"}
    assert split("7" * 1_000_000, "Split", pattern=pattern, behavior="Contiguous") == ["7" * 1_000_000]


def test_split_inverted_treats_the_rest_as_matches() -> None:
    assert split("a1b", "Split", pattern={"Regex": "[0-9]"}, behavior="Removed", invert=True) == ["1"]


def test_a_pattern_with_groups_loses_and_doubles_nothing() -> None:
    assert split("xaby", "Split", pattern={"Regex": "(a)(b)?"}, behavior="Isolated") == ["x", "ab", "y"]


def test_an_unknown_behavior_is_refused() -> None:
    with pytest.raises(BadFileError, match=r"pre_tokenizer\.behavior"):
        build("Split", pattern={"String": "-"}, behavior="Lost")


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("Whitespace", {}, ["it", "'", "s", "½", "a_b", "!?"]),
        ("WhitespaceSplit", {}, ["it's", "½", "a_b!?"]),
        ("BertPreTokenizer", {}, ["it", "'", "s", "½", "a", "_", "b", "!", "?"]),
        ("Punctuation", {}, ["it", "'", "s ½ a", "_", "b", "!", "?"]),
        ("Punctuation", {"behavior": "Contiguous"}, ["it", "'", "s ½ a", "_", "b", "!?"]),
        ("Digits", {}, ["it's ", "½", " a_b!?"]),
        ("CharDelimiterSplit", {"delimiter": "_"}, ["it's ½ a", "b!?"]),
    ],
)
def test_each_kind(kind: str, fields: dict[str, Any], words: list[str]) -> None:
    assert split("it's ½ a_b!?", kind, **fields) == words


def test_digits_alone_or_together() -> None:
    assert split("a12", "Digits") == ["a", "12"]
    assert split("a12", "Digits", individual_digits=True) == ["a", "1", "2"]


def test_byte_level_writes_words_in_the_byte_alphabet() -> None:
    assert split("it's é 42  x", "ByteLevel", add_prefix_space=False) == ["it", "'s", "ĠÃ©", "Ġ42", "Ġ", "Ġx"]
    assert split("a b", "ByteLevel", add_prefix_space=True) == ["Ġa", "Ġb"]
    assert split(" a", "ByteLevel", add_prefix_space=True) == ["Ġa"]
    assert split("a b", "ByteLevel", add_prefix_space=False, use_regex=False) == ["aĠb"]


def test_metaspace_marks_the_beginning_of_words() -> None:
    assert split("a  b ", "Metaspace") == ["▁a", "▁", "▁b", "▁"]
    assert split(" a", "Metaspace") == ["▁a"]
    assert split("a b", "Metaspace", prepend_scheme="never") == ["a", "▁b"]
    assert split("a b", "Metaspace", add_prefix_space=False) == ["a", "▁b"]
    assert split("a b", "Metaspace", split=False) == ["▁a▁b"]


def test_metaspace_first_marks_only_the_beginning_of_the_text() -> None:
    found = build("Metaspace", prepend_scheme="first")
    assert found.split("a", True) == ["▁a"]
    assert found.split("a", False) == ["a"]


def test_behind_white_space_that_is_gone_no_word_begins_the_text() -> None:
    steps = [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "prepend_scheme": "first"}]
    assert split("a b", "Sequence", pretokenizers=steps) == ["▁a", "b"]
    assert split(" a b", "Sequence", pretokenizers=steps) == ["a", "b"]


def test_bytes_before_the_last_step_are_refused() -> None:
    with pytest.raises(BadFileError, match="ByteLevel as the last"):
        build("Sequence", pretokenizers=[{"type": "ByteLevel"}, {"type": "Digits"}])
