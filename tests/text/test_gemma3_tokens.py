"""A SentencePiece vocabulary of 262,144 tokens against expected tokens that another engine made."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from modelc.formats import gguf
from modelc.text import Tokenizer, load_tokenizer
from tools.fetch_smollm2 import GEMMA3, models_folder

CASES = json.loads((Path(__file__).parents[1] / "data" / "tokens" / "gemma3.json").read_text("utf-8"))["cases"]


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    path = models_folder() / GEMMA3.file_name
    if not path.is_file():
        pytest.skip(f"no {path}: python -m tools.fetch_smollm2 {models_folder()} gemma3")
    return dict(gguf.read(path).metadata)


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
    assert (tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id) == (262144, 2, 1, 0)
    assert tokenizer.eog_ids == {1, 106, 212}  # <eos>, <end_of_turn>, </s>
    assert tokenizer.encode("Hi") == [2, *tokenizer.encode("Hi", add_special=False)]


def test_it_is_loaded_in_well_under_a_second_and_reads_a_megabyte_a_second(metadata: dict[str, Any]) -> None:
    start = time.process_time()  # the machine may have other work
    fresh = load_tokenizer(metadata)
    assert time.process_time() - start < 0.8
    text = " ".join(case["text"] for case in CASES if case["text"].isascii()) * 40
    start = time.process_time()
    fresh.encode(text)
    assert len(text) / (time.process_time() - start) > 1e6
