import random
from typing import Any

import pytest

from modelc.text import HfTokenizer
from tests.text.hf.small_json import NAMES, added, real

LONGEST = {
    "bpe-bytelevel-gpt2": 16,
    "bpe-sentencepiece-bytefallback": 48,
    "bpe-split-llama3": 153,  # 17 bytes, nine times as long before its normal form
    "unigram-metaspace": None,
    "wordpiece-bert": None,
}
# Characters that get shorter in some normal form, blanks, unknown ones, control tokens.
PIECES = [
    "a",
    "é",
    "e\u0301",
    "漢",
    "\u212b",
    "\u2126",
    " ",
    "\n",
    "😀",
    "\u212a",
    "ﬁ",
    "▁",
    "<s>",
    "the ",
    "\u0378",
    "\x00",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_text_has_fewer_tokens_than_the_bound_says(name: str) -> None:
    tokenizer = HfTokenizer({"tokenizer": real(name)})
    assert tokenizer.longest_token_bytes == LONGEST[name]
    rng = random.Random(1)
    for _ in range(300):
        text = "".join(rng.choices(PIECES, k=rng.randint(0, 40)))
        assert tokenizer.least_tokens(text) <= len(tokenizer.encode(text, add_special=False, parse_special=True)), text


def changed(**parts: Any) -> HfTokenizer:
    return HfTokenizer({"tokenizer": {**real("bpe-bytelevel-gpt2"), **parts}})


def replacing(content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": "abc"}, "content": content}


@pytest.mark.parametrize(
    ("parts", "longest"),
    [
        ({}, 16),
        ({"normalizer": {"type": "NFC"}}, 144),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}}, 144),
        ({"normalizer": replacing("d")}, 48),
        ({"normalizer": replacing("")}, None),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}}, None),
        ({"normalizer": {"type": "StripAccents"}}, None),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed"}}, None),
        ({"pre_tokenizer": {"type": "WhitespaceSplit"}}, None),
        ({"pre_tokenizer": None}, None),
        ({"added_tokens": [added("<a>", 0, lstrip=True)]}, None),
        ({"added_tokens": [added("a" * 99, 0)]}, 99),
        ({"added_tokens": [added("!", real("bpe-bytelevel-gpt2")["model"]["vocab"]["!"], special=True)]}, None),
    ],
)
def test_there_is_a_bound_where_nothing_is_left_out(parts: dict[str, Any], longest: int | None) -> None:
    assert changed(**parts).longest_token_bytes == longest
