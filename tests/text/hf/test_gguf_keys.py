"""A `tokenizer.json` as GGUF's keys: read again as GGUF, it gives the tokens of the library that made the cases."""

import copy
from typing import Any

import pytest

from modelc.errors import UnsupportedError
from modelc.text import load_tokenizer
from modelc.text.hf.gguf_keys import gguf_tokenizer_keys
from modelc.text.vocabulary import TokenType
from tests.text.hf.small_json import expected, real

NAMES = ["bpe-bytelevel-gpt2", "bpe-sentencepiece-bytefallback", "bpe-split-llama3", "wordpiece-bert"]
COMPOSED = {
    "bpe-split-llama3": {"e\u0301 (combining)"}
}  # GGUF has no key for the normal form that this tokenizer asks for


@pytest.mark.parametrize("name", NAMES)
def test_the_keys_give_the_same_tokens(name: str) -> None:
    tokenizer = load_tokenizer(gguf_tokenizer_keys({"tokenizer": real(name)}, 0))
    for case in expected(name):
        if case["text"] not in COMPOSED.get(name, ()):
            assert tokenizer.encode(case["text"], parse_special=True) == case["ids"]
            assert tokenizer.encode(case["text"], add_special=False, parse_special=True) == case["ids_no_special"]


def test_a_model_without_a_tokenizer_says_so() -> None:
    assert gguf_tokenizer_keys({}, 100) == {"tokenizer.ggml.model": "no_vocab"}


def test_rows_without_a_token_are_unused() -> None:
    keys = gguf_tokenizer_keys({"tokenizer": real("bpe-bytelevel-gpt2")}, 710)
    assert len(keys["tokenizer.ggml.tokens"]) == len(set(keys["tokenizer.ggml.tokens"])) == 710
    assert keys["tokenizer.ggml.token_type"][-10:] == [TokenType.UNUSED] * 10


def test_special_ids_come_from_the_files_beside() -> None:
    metadata = {
        "tokenizer": real("bpe-split-llama3"),
        "generation_config": {"bos_token_id": 0, "eos_token_id": [1, 5], "pad_token_id": 2},
    }
    keys = gguf_tokenizer_keys(metadata, 0)
    assert keys["tokenizer.ggml.bos_token_id"] == 0
    assert keys["tokenizer.ggml.eos_token_id"] == 1
    assert keys["tokenizer.ggml.padding_token_id"] == 2
    assert keys["tokenizer.ggml.eot_token_id"] == 5
    assert keys["tokenizer.ggml.eog_token_ids"] == [1, 5]
    assert keys["tokenizer.ggml.add_bos_token"] is False


def pre_of(steps: list[dict[str, Any]], ignore_merges: bool = False) -> str:
    content = real("bpe-bytelevel-gpt2")
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    content["model"]["ignore_merges"] = ignore_merges
    return str(gguf_tokenizer_keys({"tokenizer": content}, 0)["tokenizer.ggml.pre"])


def byte_level(regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def test_known_ways_of_cutting_have_names() -> None:
    split = real("bpe-split-llama3")["pre_tokenizer"]["pretokenizers"][0]
    single = copy.deepcopy(split)
    single["pattern"]["Regex"] = single["pattern"]["Regex"].replace("{1,3}", "")
    assert pre_of([byte_level(True)]) == "gpt-2"
    assert pre_of([{"type": "Digits", "individual_digits": True}, byte_level(True)]) == "smollm"
    assert pre_of([split, byte_level(False)], ignore_merges=True) == "llama-bpe"
    assert pre_of([split, byte_level(False)]) == "dbrx"
    assert pre_of([single, byte_level(False)]) == "qwen2"


def test_an_unknown_way_of_cutting_is_an_error_that_names_it() -> None:
    with pytest.raises(UnsupportedError, match=r"pre_tokenizer.*Digits, ByteLevel"):
        pre_of([{"type": "Digits", "individual_digits": False}, byte_level(True)])
    with pytest.raises(UnsupportedError, match=r"pre_tokenizer.*Whitespace, ByteLevel"):
        pre_of([{"type": "Whitespace"}, byte_level(True)])
    with pytest.raises(UnsupportedError, match="Unigram"):
        gguf_tokenizer_keys({"tokenizer": real("unigram-metaspace")}, 0)
