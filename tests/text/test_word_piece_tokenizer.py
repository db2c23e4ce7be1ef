from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text import StreamDecoder, WordPieceTokenizer, load_tokenizer
from tests.text.small_vocabulary import CONTROL, NORMAL

MARKED = ["[UNK]", "[CLS]", "[SEP]", "▁un", "able", "▁able", "▁,", "▁漢"]
PREFIXED = ["[UNK]", "[CLS]", "[SEP]", "un", "##able", "able", ",", "漢"]


def tokenizer(texts: list[str], **keys: Any) -> WordPieceTokenizer:
    found = {
        "model": "bert",
        "tokens": texts,
        "token_type": [CONTROL] * 3 + [NORMAL] * (len(texts) - 3),
        "unknown_token_id": 0,
        "cls_token_id": 1,
        "seperator_token_id": 2,
    } | keys
    loaded = load_tokenizer({f"tokenizer.ggml.{name}": value for name, value in found.items() if value is not None})
    assert isinstance(loaded, WordPieceTokenizer)
    return loaded


@pytest.fixture(params=[MARKED, PREFIXED], ids=["marked", "prefixed"])
def either(request: pytest.FixtureRequest) -> WordPieceTokenizer:
    return tokenizer(request.param)


def test_words_are_cut_into_pieces_between_begin_and_end(either: WordPieceTokenizer) -> None:
    assert either.encode("Unable, ÜNABLE able漢") == [1, 3, 4, 6, 3, 4, 5, 7, 2]
    assert either.encode("unx", add_special=False) == [0]
    assert either.encode("") == [1, 2]


def test_control_tokens_in_text_are_recognised_on_request(either: WordPieceTokenizer) -> None:
    assert either.encode("un[SEP]", add_special=False, parse_special=True) == [3, 2]


def test_words_are_joined_by_blanks_when_decoded(either: WordPieceTokenizer) -> None:
    ids = [1, 3, 4, 5, 2]
    assert either.decode(ids, skip_special=True) == "unable able"
    stream = StreamDecoder(either, skip_special=True)
    assert "".join(map(stream.push, ids)) == "unable able"


def test_upper_case_stays_where_the_file_says_so() -> None:
    assert tokenizer(MARKED, **{"normalizer.lowercase": False}).encode("Un un", add_special=False) == [0, 3]


def test_the_end_is_left_out_where_the_file_says_so() -> None:
    assert tokenizer(MARKED, add_sep_token=False).encode("un") == [1, 3]


def test_ids_that_the_file_does_not_name_are_those_of_bert() -> None:
    texts = [f"[{at}]" for at in range(103)] + ["▁a"]
    keys = dict.fromkeys(("unknown_token_id", "cls_token_id", "seperator_token_id"))
    assert tokenizer(texts, token_type=None, **keys).encode("a b") == [101, 103, 100, 102]


def test_a_flag_of_another_type_is_a_bad_file() -> None:
    with pytest.raises(BadFileError, match="flag"):
        tokenizer(MARKED, add_sep_token=1)
