from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.errors import BadFileError, ModelcError, UnsupportedError
from modelc.text import BpeTokenizer, encode_prompt, load_tokenizer, tokenizer_metadata
from tests.text.small_vocabulary import CONTROL, metadata


def test_a_byte_level_vocabulary_is_loaded() -> None:
    assert load_tokenizer(metadata("a b")).encode("ab") == [256]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"general.architecture": "mlp"},
        {"tokenizer.ggml.model": "none"},
        {"tokenizer.ggml.model": "no_vocab", "tokenizer.ggml.tokens": []},
    ],
)
def test_a_model_without_a_tokenizer_gets_bytes(keys: dict[str, Any]) -> None:
    assert load_tokenizer(keys).encode("é") == [0xC3, 0xA9]


@pytest.mark.parametrize("model", ["rwkv", "plamo2", "gemma4"])
def test_another_kind_of_tokenizer_is_refused_by_name(model: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        load_tokenizer(metadata(model=model))
    expected = f"got tokenizer.ggml.model '{model}', expected gpt2 or llama or bert or t5"
    assert str(caught.value) == f"this tokenizer is not supported: {expected}"


@pytest.mark.parametrize("model", [None, 7, ["gpt2"]])
def test_tokens_without_a_kind_are_a_bad_file(model: object) -> None:
    with pytest.raises(BadFileError, match=r"tokenizer\.ggml\.model is missing or is no text"):
        load_tokenizer(metadata(model=model))


def test_metadata_of_the_tokenizer_are_taken_out_and_the_early_key_renamed() -> None:
    keys = {"general.name": "x", "tokenizer.ggml.vocab": ["a"], "tokenizer.chat_template": "t"}
    assert tokenizer_metadata(keys) == {"tokenizer.ggml.tokens": ["a"], "tokenizer.chat_template": "t"}
    assert tokenizer_metadata({**keys, "tokenizer.ggml.tokens": ["b"]})["tokenizer.ggml.tokens"] == ["b"]


_KEYS = """tokens token_type merges pre vocab scores bos_token_id eos_token_id eot_token_id padding_token_id
unknown_token_id cls_token_id seperator_token_id add_bos_token add_eos_token add_sep_token eog_token_ids
add_space_prefix remove_extra_whitespaces precompiled_charsmap normalizer.lowercase"""
MODELS = st.one_of(st.sampled_from(["gpt2", "llama", "bert", "t5"]), st.none(), st.integers(), st.text(max_size=5))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 300), st.floats(), st.text(max_size=6))
VALUES = st.one_of(
    SCALARS, st.lists(st.one_of(st.text(max_size=4), st.sampled_from(["a b", "ab c", "</s>"])), max_size=9)
)


@given(
    st.dictionaries(st.sampled_from(_KEYS.split()), st.one_of(VALUES, st.lists(SCALARS, max_size=9))),
    MODELS,
    st.text(max_size=9),
)
def test_whatever_the_metadata_are_the_tokenizer_works_or_says_why_not(
    keys: dict[str, Any], model: object, text: str
) -> None:
    with suppress(ModelcError):
        tokenizer = load_tokenizer(metadata("a b", **{"scores": [0.0] * 257, "model": model} | keys))
        tokenizer.decode(tokenizer.encode(text, parse_special=True))


# BOS of a prompt

SPECIAL = {"<s>": CONTROL, "</s>": CONTROL}


def prompt_ids(prompt: str, **keys: Any) -> list[int]:
    return encode_prompt(BpeTokenizer.from_gguf(metadata(special=SPECIAL, **keys)), prompt)


@pytest.mark.parametrize("prompt", ["a", "<s>a"])
def test_bos_is_there_once_whether_or_not_the_template_wrote_it(prompt: str) -> None:
    assert prompt_ids(prompt, bos_token_id=256, add_bos_token=True) == [256, ord("a")]


def test_bos_is_not_added_where_the_model_does_not_want_it() -> None:
    assert prompt_ids("a", bos_token_id=256, add_bos_token=False) == [ord("a")]


def test_a_prompt_to_be_continued_gets_no_eos() -> None:
    assert prompt_ids("a</s>b", eos_token_id=257, add_eos_token=True) == [ord("a"), 257, ord("b")]


# bounds

LLAMA_KEYS = {"model": "llama", "scores": [0.0] * 257}


@given(st.text(alphabet=st.sampled_from("ab \u2581\u00e9\u4e2d"), max_size=40))
@pytest.mark.parametrize("keys", [{}, LLAMA_KEYS], ids=["bpe", "sentencepiece"])
def test_no_text_has_fewer_tokens_than_the_least(keys: dict[str, Any], text: str) -> None:
    tokenizer = load_tokenizer(metadata("a b", unknown_token_id=0, **keys))
    assert tokenizer.least_tokens(text) <= len(tokenizer.encode(text, add_special=False))


def test_bytes_that_are_no_token_do_not_count() -> None:
    found = metadata("a b")
    found["tokenizer.ggml.tokens"][ord("x")] = "xx"
    tokenizer = load_tokenizer(found)
    assert tokenizer.longest_token_bytes == 2
    assert tokenizer.least_tokens("xxxxaaaa") == 2


def test_white_space_that_a_token_takes_has_no_bound() -> None:
    phi = {**metadata("a b", special={"<|user|>": CONTROL}), "general.name": "Phi-3"}
    assert load_tokenizer(phi).longest_token_bytes is None
    assert load_tokenizer(phi).least_tokens("a" * 100) == 0
