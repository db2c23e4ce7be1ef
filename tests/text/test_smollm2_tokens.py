"""A real vocabulary against expected tokens that another engine made."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from modelc.formats import gguf
from modelc.text import ChatTemplate, Tokenizer, encode_prompt, load_tokenizer

CASES = json.loads((Path(__file__).parents[1] / "data" / "tokens" / "smollm2.json").read_text("utf-8"))["cases"]


@pytest.fixture(scope="module")
def metadata(smollm2_gguf: Path) -> dict[str, Any]:
    return dict(gguf.read(smollm2_gguf).metadata)


@pytest.fixture(scope="module")
def tokenizer(metadata: dict[str, Any]) -> Tokenizer:
    return load_tokenizer(metadata)


def test_all_cases_have_the_expected_tokens_and_text(tokenizer: Tokenizer) -> None:
    assert len(CASES) == 180
    for case in CASES:
        ids = tokenizer.encode(case["text"], add_special=False, parse_special=case["parse_special"])
        assert ids == case["tokens"], case["text"]
        assert tokenizer.decode(ids) == case["decoded"]


def test_special_ids(tokenizer: Tokenizer) -> None:
    assert (tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id) == (49152, 1, 2, 2)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer.eog_ids == {0, 2, 4}  # <|endoftext|>, <|im_end|>, <reponame>
    assert tokenizer.special_ids == set(range(17))
    assert not tokenizer.add_bos


def test_the_chat_template_gives_a_prompt_with_its_control_tokens(
    metadata: dict[str, Any], tokenizer: Tokenizer
) -> None:
    prompt = ChatTemplate(metadata["tokenizer.chat_template"]).render(
        [{"role": "user", "content": "Hi"}], bos_token=tokenizer.bos_token, eos_token=tokenizer.eos_token
    )
    assert prompt.endswith("<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    ids = encode_prompt(tokenizer, prompt)
    assert (ids.count(1), ids.count(2)) == (3, 2)
    assert tokenizer.decode(ids) == prompt


def test_english_is_read_at_a_megabyte_a_second(tokenizer: Tokenizer) -> None:
    text = " ".join(case["text"] for case in CASES if case["text"].isascii()) * 40
    start = time.process_time()  # the machine may have other work
    tokenizer.encode(text)
    assert len(text) / (time.process_time() - start) > 1e6
