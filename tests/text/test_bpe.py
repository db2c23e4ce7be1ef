import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.text import BpeTokenizer
from modelc.text.bpe import CACHED_WORDS, MAX_CACHED_CHARS
from tests.text.small_vocabulary import BYTE, CONTROL, UNUSED, USER_DEFINED, metadata

DATA = Path(__file__).parents[1] / "data" / "tokens"
ABC = ("a b", "ab c", "Ġ ab")
AB, ABC_TOKEN, SPACE_AB = 256, 257, 258  # bytes have their own values as ids


def build(*merges: str, **keys: Any) -> BpeTokenizer:
    return BpeTokenizer.from_gguf(metadata(*(merges or ABC), **keys))


def small_model(name: str) -> tuple[BpeTokenizer, list[dict[str, Any]]]:
    saved = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    cases = saved.pop("cases")
    return BpeTokenizer.from_gguf({f"tokenizer.ggml.{key}": value for key, value in saved.items()}), cases


# Words and merges


def test_words_are_merged_inside_their_bounds() -> None:
    tokenizer = build()
    assert tokenizer.encode("abc ab") == [ABC_TOKEN, SPACE_AB]
    assert tokenizer.encode("ab1c") == [AB, ord("1"), ord("c")]
    assert tokenizer.decode([ABC_TOKEN, SPACE_AB]) == "abc ab"


def test_empty_text_has_no_tokens() -> None:
    assert build().encode("") == []
    assert build().decode([]) == ""


@pytest.mark.parametrize("name", ["gpt-2-splitting", "llama3-splitting"])
def test_small_vocabularies_give_the_tokens_of_their_own_library(name: str) -> None:
    tokenizer, cases = small_model(name)
    assert len(cases) == 60
    for case in cases:
        assert tokenizer.encode(case["text"], parse_special=True) == case["tokens"], case["text"]
        assert tokenizer.decode(case["tokens"]) == case["text"]


def test_whole_words_pass_by_the_merges_only_where_the_pre_tokenizer_says_so() -> None:
    texts = {"abd": 1}  # a token that no merge makes
    assert build(special=texts, pre="gpt-2").encode("abd") == [AB, ord("d")]
    assert build(special=texts, pre="llama-bpe").encode("abd") == [259]


def test_a_merge_that_ends_in_no_token_falls_back_to_bytes() -> None:
    tokens = metadata(*ABC)["tokenizer.ggml.tokens"][:-3]
    tokenizer = build(tokens=tokens, token_type=None)
    assert tokenizer.encode("abc") == [ord("a"), ord("b"), ord("c")]


def test_a_byte_without_a_token_is_left_out() -> None:
    tokens = ["x" if text == "b" else text for text in metadata(*ABC)["tokenizer.ggml.tokens"]]
    assert build(tokens=tokens, merges=[]).encode("abc") == [ord("a"), ord("c")]


def test_lone_surrogates_count_as_the_replacement_character() -> None:
    tokenizer = build()
    assert tokenizer.decode(tokenizer.encode("a\ud83d")) == "a\ufffd"
    assert tokenizer.decode(tokenizer.encode("\ud83d\ude42")) == "🙂"


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    tokenizer = build()
    assert tokenizer.decode(tokenizer.encode(text)) == text


# Special tokens

SPECIAL = {"<|im_end|>": CONTROL, "<think>": USER_DEFINED, "<unk>": 2}
IM_END, THINK, UNK = 259, 260, 261


def test_control_tokens_in_text_are_recognised_on_request_only() -> None:
    tokenizer = build(special=SPECIAL)
    assert tokenizer.encode("ab<|im_end|>", parse_special=True) == [AB, IM_END]
    assert IM_END not in tokenizer.encode("ab<|im_end|>")
    assert UNK not in tokenizer.encode("<unk>")
    assert tokenizer.decode(tokenizer.encode("ab<|im_end|>")) == "ab<|im_end|>"
    assert tokenizer.special_ids == {IM_END, UNK}


@pytest.mark.parametrize("parse_special", [False, True])
def test_user_defined_tokens_are_always_recognised(parse_special: bool) -> None:
    assert build(special=SPECIAL).encode("ab<think>ab", parse_special=parse_special) == [AB, THINK, AB]


def test_spaces_beside_special_tokens_are_neither_lost_nor_added() -> None:
    tokenizer = build(special=SPECIAL)
    ids = tokenizer.encode("ab <|im_end|> ab", parse_special=True)
    assert ids == [AB, ord(" "), IM_END, SPACE_AB]
    assert tokenizer.decode(ids) == "ab <|im_end|> ab"


def test_merges_and_whole_words_never_make_a_control_token() -> None:
    merged = build(
        "a b", "ab c", token_type=[1] * 257 + [CONTROL], tokens=metadata("a b", "ab c")["tokenizer.ggml.tokens"]
    )
    assert merged.encode("abc") == [ord("a"), ord("b"), ord("c")]
    assert build(special={"abd": CONTROL}, pre="llama-bpe").encode("abd") == [AB, ord("d")]


def test_decode_can_leave_control_tokens_out() -> None:
    tokenizer = build(special=SPECIAL)
    assert tokenizer.decode([AB, IM_END, THINK]) == "ab<|im_end|><think>"
    assert tokenizer.decode([AB, IM_END, THINK], skip_special=True) == "ab<think>"


# BOS and EOS


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, [AB]),
        ({"add_bos_token": True}, [1, AB]),
        ({"add_eos_token": True}, [AB, 2]),
        ({"add_bos_token": True, "add_eos_token": True}, [1, AB, 2]),
        ({"pre": "llama-bpe"}, [1, AB]),
        ({"pre": "llama-bpe", "add_bos_token": False}, [AB]),
        ({"pre": "llama-bpe", "bos_token_id": None}, [AB]),
    ],
)
def test_bos_and_eos_are_added_as_the_metadata_say(keys: dict[str, Any], expected: list[int]) -> None:
    tokenizer = build(**{"bos_token_id": 1, "eos_token_id": 2} | keys)
    assert tokenizer.encode("ab") == expected
    assert tokenizer.encode("ab", add_special=False) == [AB]


def test_texts_of_bos_and_eos() -> None:
    tokenizer = build(special={"<s>": CONTROL, "</s>": CONTROL}, bos_token_id=259, eos_token_id=260)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")
    assert (build().bos_token, build().eos_token) == ("", "")


# Decoding


@pytest.mark.parametrize("token", [-1, 259, 10**12])
def test_ids_outside_the_vocabulary_are_skipped(token: int) -> None:
    assert build().decode([AB, token, AB]) == "abab"
    assert build().token_bytes(token) == b""


def test_bytes_are_decoded_once_all_are_joined() -> None:
    tokenizer = build()
    first, second = tokenizer.encode("é")
    assert tokenizer.decode_bytes([first]) == b"\xc3"
    assert tokenizer.decode([first, second]) == "é"
    assert tokenizer.decode([second, first]) == "\ufffd\ufffd"


def test_unused_tokens_have_no_text_and_byte_tokens_have_a_byte() -> None:
    tokenizer = build(special={"[PAD]": UNUSED, "<0x0A>": BYTE, "<0xZZ>": BYTE, "odd": 77})
    assert [tokenizer.token_bytes(token) for token in range(259, 263)] == [b"", b"\n", b"<0xZZ>", b"odd"]


# Without a tokenizer


@given(st.text())
def test_byte_fallback_has_the_bytes_as_tokens(text: str) -> None:
    tokenizer = BpeTokenizer.byte_fallback()
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(list(text.encode())) == text


def test_byte_fallback_has_256_tokens_and_no_special_ones() -> None:
    tokenizer = BpeTokenizer.byte_fallback()
    assert tokenizer.vocab_size == 256
    assert (tokenizer.bos_id, tokenizer.eos_id) == (None, None)
    assert not tokenizer.eog_ids | tokenizer.special_ids


# Speed and memory


def test_long_words_are_not_kept() -> None:
    tokenizer = build()
    for length in range(MAX_CACHED_CHARS - 1, MAX_CACHED_CHARS + 2):
        tokenizer.encode("a" * length)
    cache = tokenizer._cached_word_ids.cache_info()
    assert (cache.currsize, cache.maxsize) == (2, CACHED_WORDS)


@pytest.mark.parametrize("unit", ["a", "ab", " ", "\n", "'", "é", "🙂", "<|im_end|", "1"])
def test_text_without_spaces_takes_no_quadratic_time(unit: str) -> None:
    tokenizer = build("a b", "ab ab", "abab abab", "Ġ Ġ", "ĠĠ ĠĠ", special=SPECIAL)
    text = unit * (100_000 // len(unit))
    start = time.perf_counter()
    ids = tokenizer.encode(text, parse_special=True)
    assert time.perf_counter() - start < 3.0
    assert tokenizer.decode(ids) == text
