import logging
from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text.vocabulary import Vocabulary
from tests.text.small_vocabulary import CONTROL, NORMAL, USER_DEFINED, metadata


def ends(**keys: Any) -> list[str]:
    vocabulary = Vocabulary.from_gguf(metadata(**keys))
    return sorted(vocabulary.tokens[token] for token in vocabulary.eog_ids)


def test_named_ids_are_read() -> None:
    found = Vocabulary.from_gguf(
        metadata(bos_token_id=1, eos_token_id=2, padding_token_id=3, add_bos_token=True, add_eos_token=True, pre="x")
    )
    assert (found.bos_id, found.eos_id, found.pad_id) == (1, 2, 3)
    assert found.add_bos is True
    assert found.add_eos is True
    assert found.pre == "x"


def test_what_the_file_does_not_say_is_none() -> None:
    found = Vocabulary.from_gguf(metadata(token_type=None, pre=None))
    assert (found.bos_id, found.eos_id, found.pad_id, found.add_bos, found.add_eos, found.pre) == (None,) * 6
    assert set(found.types) == {NORMAL}
    assert found.eog_ids == frozenset()


def test_the_key_of_early_files_is_read() -> None:
    keys = metadata()
    keys["tokenizer.ggml.vocab"] = keys.pop("tokenizer.ggml.tokens")
    assert len(Vocabulary.from_gguf(keys).tokens) == 256


# All end-of-generation tokens


@pytest.mark.parametrize("key", ["eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"])
def test_every_named_end_ends_a_generation(key: str) -> None:
    assert ends(special={"<over>": CONTROL}, **{f"{key}_token_id": 256}) == ["<over>"]


@pytest.mark.parametrize("kind", [CONTROL, USER_DEFINED])
@pytest.mark.parametrize(
    "text",
    ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<｜end▁of▁sentence｜>"],
)
def test_well_known_ends_end_a_generation_although_no_key_names_them(text: str, kind: int) -> None:
    assert ends(special={text: kind, "<|im_start|>": CONTROL}) == [text]


def test_a_list_of_ends_is_read() -> None:
    assert ends(eog_token_ids=[ord("A"), 9999, -1, "x"]) == ["A"]


def test_an_end_whose_type_was_lost_is_a_control_token_again() -> None:
    found = Vocabulary.from_gguf(metadata(special={"<|im_end|>": NORMAL, "<s>": NORMAL}, bos_token_id=257))
    assert found.eog_ids == {256}
    assert found.types[256:] == [CONTROL, CONTROL]


def test_ordinary_text_that_looks_like_an_end_is_none() -> None:
    found = Vocabulary.from_gguf(metadata("< /", "</ s", "</s >"))
    assert found.tokens[258] == "</s>"
    assert found.eog_ids == frozenset()
    assert found.types[258] == NORMAL


def test_a_part_of_a_message_ends_nothing_where_return_and_call_end_it() -> None:
    harmony = {"<|end|>": CONTROL, "<|return|>": CONTROL, "<|call|>": CONTROL}
    assert ends(special=harmony) == ["<|call|>", "<|return|>"]
    assert ends(special={"<|end|>": CONTROL}) == ["<|end|>"]


# Bad files


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tokens": None}, "the tokenizer has no tokens: expected tokenizer.ggml.tokens"),
        ({"tokens": []}, "the tokenizer has no tokens: expected tokenizer.ggml.tokens"),
        ({"merges": None}, "the tokenizer has no merges: expected tokenizer.ggml.merges"),
        ({"tokens": "abc"}, "tokenizer.ggml.tokens has the wrong type: got str, expected a list of strings"),
        ({"tokens": ["a", 1]}, "tokenizer.ggml.tokens has the wrong type: got int, expected strings only"),
        ({"merges": [["a", "b"]]}, "tokenizer.ggml.merges has the wrong type: got list, expected strings only"),
        ({"token_type": [1]}, "tokenizer.ggml.token_type is too short: got 1, expected 256"),
        ({"token_type": ["x"] * 256}, "tokenizer.ggml.token_type has the wrong type: expected integers only"),
        ({"bos_token_id": "1"}, "tokenizer.ggml.bos_token_id has the wrong type: got str, expected an integer"),
        ({"eos_token_id": True}, "tokenizer.ggml.eos_token_id has the wrong type: got bool, expected an integer"),
        ({"add_bos_token": 1}, "tokenizer.ggml.add_bos_token has the wrong type: got int, expected true or false"),
        ({"add_bos_token": True}, "tokenizer.ggml.add_bos_token is true, and there is no bos_token_id"),
        ({"add_eos_token": True}, "tokenizer.ggml.add_eos_token is true, and there is no eos_token_id"),
        ({"pre": 7}, "tokenizer.ggml.pre has the wrong type: got int, expected a string"),
        ({"eog_token_ids": 7}, "tokenizer.ggml.eog_token_ids has the wrong type: got int, expected a list of integers"),
    ],
)
def test_wrong_metadata_is_one_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(BadFileError) as caught:
        Vocabulary.from_gguf(metadata(**keys))
    assert str(caught.value) == message


@pytest.mark.parametrize("token", [256, -1, 2**32 - 1])
def test_an_id_out_of_range_is_ignored_with_a_warning(token: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="modelc"):
        assert Vocabulary.from_gguf(metadata(eos_token_id=token)).eos_id is None
    assert f"tokenizer.ggml.eos_token_id is {token} and the vocabulary has 256 tokens" in caplog.text
