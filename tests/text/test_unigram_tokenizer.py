from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text import StreamDecoder, UnigramTokenizer, load_tokenizer
from tests.text.small_charsmap import charsmap
from tests.text.small_vocabulary import CONTROL, NORMAL, UNKNOWN

TEXTS = ["<pad>", "</s>", "<unk>", "▁", "▁a", "b", "▁ab", "fi"]


def tokenizer(**keys: Any) -> UnigramTokenizer:
    found = {
        "model": "t5",
        "tokens": TEXTS,
        "token_type": [CONTROL, CONTROL, UNKNOWN] + [NORMAL] * 5,
        "scores": [0.0, 0.0, 0.0, -2.0, -1.0, -1.0, -3.0, -1.0],
    } | keys
    loaded = load_tokenizer({f"tokenizer.ggml.{name}": value for name, value in found.items()})
    assert isinstance(loaded, UnigramTokenizer)
    return loaded


def test_the_best_cut_with_an_end_and_a_space_in_front() -> None:
    assert tokenizer().encode("ab a") == [4, 5, 4, 1]
    assert tokenizer(add_eos_token=False).encode("xx") == [3, 2]
    assert tokenizer(add_space_prefix=False).encode(" b") == [3, 5, 1]


def test_extra_spaces_go_where_the_file_says_so() -> None:
    assert tokenizer().encode(" a  a ", add_special=False) == [3, 4, 3, 4, 3]
    assert tokenizer(remove_extra_whitespaces=True).encode(" a  a ", add_special=False) == [4, 4]
    assert tokenizer(remove_extra_whitespaces=True).encode("  ", add_special=False) == []


def test_the_character_map_is_used() -> None:
    found = tokenizer(precompiled_charsmap=list(charsmap({"ﬁ": "fi"})), add_space_prefix=False)
    assert found.encode("ﬁ", add_special=False) == [7]
    signed = [byte - 256 if byte > 127 else byte for byte in charsmap({"ﬁ": "fi"})]
    assert tokenizer(precompiled_charsmap=signed).encode("ﬁ", add_special=False) == [3, 7]


def test_the_stream_joined_is_the_whole_decoded() -> None:
    found = tokenizer()
    stream = StreamDecoder(found)
    assert [*map(stream.push, [4, 5, 4])] == ["a", "b", " a"]
    assert found.decode([4, 5, 4]) == "ab a"


@pytest.mark.parametrize("keys", [{"precompiled_charsmap": "x"}, {"remove_extra_whitespaces": 1}])
def test_keys_of_another_type_are_a_bad_file(keys: dict[str, Any]) -> None:
    with pytest.raises(BadFileError, match="has the wrong type"):
        tokenizer(**keys)
