from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text import SentencePieceTokenizer, StreamDecoder, encode_prompt, load_tokenizer
from tests.text.small_vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED

TOKENS = [
    ("<unk>", UNKNOWN, 0.0),
    ("<s>", CONTROL, 0.0),
    ("</s>", CONTROL, 0.0),
    *((f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)),
    ("<tool>", USER_DEFINED, 0.0),  # 259
    ("▁a", NORMAL, -1.0),  # 260
    ("▁", NORMAL, -5.0),
    ("a", NORMAL, -6.0),
    ("b", NORMAL, -7.0),
    ("ab", NORMAL, -2.0),  # 264
    ("▁▁", NORMAL, -3.0),
]


def tokenizer(**keys: Any) -> SentencePieceTokenizer:
    texts, types, scores = zip(*TOKENS, strict=True)
    found = {"model": "llama", "tokens": list(texts), "token_type": list(types), "scores": list(scores)} | keys
    loaded = load_tokenizer({f"tokenizer.ggml.{name}": value for name, value in found.items()})
    assert isinstance(loaded, SentencePieceTokenizer)
    return loaded


def ids(text: str, parse_special: bool = False, **keys: Any) -> list[int]:
    return tokenizer(**keys).encode(text, add_special=False, parse_special=parse_special)


def test_the_best_score_is_merged_first_and_text_starts_with_a_space() -> None:
    assert ids("ab") == [260, 263]
    assert ids("ab", add_space_prefix=False) == [264]
    assert ids(" ab", add_space_prefix=False) == [260, 263]
    assert ids("  b") == [265, 261, 263]
    assert ids("") == []


def test_the_space_comes_again_after_each_special_token() -> None:
    assert ids("a<tool>a") == [260, 259, 260]
    assert ids("a</s>a", parse_special=True) == [260, 2, 260]


def test_control_tokens_in_text_are_text_unless_asked_for() -> None:
    assert 2 not in ids("</s>")
    assert ids("</s>", parse_special=True) == [2]


def test_characters_that_are_no_token_become_their_bytes() -> None:
    assert ids("é", add_space_prefix=False) == [3 + 0xC3, 3 + 0xA9]


def test_without_byte_tokens_they_are_unknown() -> None:
    types = [NORMAL if kind == BYTE else kind for _, kind, _ in TOKENS]
    assert ids("éa", add_space_prefix=False, token_type=types) == [0, 262]


def test_the_text_of_a_byte_token_is_text() -> None:
    assert 3 + 0x41 not in ids("<0x41>")


def test_bos_is_added_unless_the_file_says_no_and_eos_only_if_it_says_so() -> None:
    assert tokenizer().encode("a") == [1, 260]
    assert tokenizer(add_bos_token=False, add_eos_token=True).encode("a") == [260, 2]
    assert encode_prompt(tokenizer(), "<s>a") == [1, 260]
    assert tokenizer().eog_ids == {2}


def test_decoding_takes_away_the_space_that_encoding_added() -> None:
    found = tokenizer()
    for text in ["ab", " ab", "a b  ab\nbé🙂", ""]:
        assert found.decode(found.encode(text, add_special=False)) == text
    assert found.decode([1, 260], skip_special=True) == "a"
    assert tokenizer(add_space_prefix=False).decode([260]) == " a"


def test_the_stream_joined_is_the_whole_decoded_and_a_continuation_keeps_its_space() -> None:
    found = tokenizer()
    stream = StreamDecoder(found, skip_special=True)
    pieces = [*map(stream.push, [1, 260, 260, 3 + 0xC3, 3 + 0xA9]), stream.flush()]
    assert pieces == ["", "a", " a", "", "é", ""]
    assert [stream.push(260), stream.push(260)] == ["a", " a"]
    assert StreamDecoder(found, at_start=False).push(260) == " a"


def test_marks_of_turns_of_phi_3_take_the_white_space_after_them() -> None:
    texts, types, scores = zip(*TOKENS, strict=True)
    keys = {"model": "llama", "tokens": list(texts), "token_type": list(types), "scores": list(scores)}
    metadata = {f"tokenizer.ggml.{name}": value for name, value in keys.items()}
    phi, other = load_tokenizer({**metadata, "general.name": "Phi-3 Mini"}), load_tokenizer(metadata)
    for found, ids in ((phi, [259, 260, 259, 1, 261, 260]), (other, [259, 261, 13, 262, 259, 261, 13, 1, 261, 260])):
        assert found.encode("<tool>\na<tool>\n<s> a", add_special=False, parse_special=True) == ids


@pytest.mark.parametrize("scores", [None, [], [0.0], ["x"] * len(TOKENS), [float("nan")] * len(TOKENS), 3])
def test_a_vocabulary_without_scores_is_a_bad_file(scores: object) -> None:
    with pytest.raises(BadFileError, match="score"):
        tokenizer(scores=scores)
