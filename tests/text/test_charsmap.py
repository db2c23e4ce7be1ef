import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.errors import BadFileError
from modelc.text.charsmap import Charsmap, charsmap_of
from tests.text.small_charsmap import charsmap

MAP = charsmap({"ﬁ": "fi", "\u3000": " ", "e\u0301": "é", "x": ""})


def test_characters_and_clusters_get_their_form_and_others_stay() -> None:
    assert Charsmap(MAP, "map")("aﬁx\u3000e\u0301e🙂") == "afi ée🙂"


def test_a_long_cluster_is_taken_character_by_character() -> None:
    assert Charsmap(MAP, "map")("x\u0301\u0301\u0301") == "\u0301\u0301\u0301"


def test_the_longest_match_is_taken_where_asked_for() -> None:
    longest = Charsmap(MAP, "map", longest=True)
    assert longest("e\u0301\u0301\u0301xa") == "é\u0301\u0301a"
    assert Charsmap(MAP, "map")("e\u0301\u0301\u0301xa") == "e\u0301\u0301\u0301a"


def test_an_empty_map_changes_nothing() -> None:
    assert Charsmap(b"", "map")("ﬁ") == "ﬁ"


def test_base64_is_read() -> None:
    assert charsmap_of(base64.b64encode(MAP).decode(), "map")("ﬁ") == "fi"
    with pytest.raises(BadFileError, match="is not base64: 'map'"):
        charsmap_of("?", "map")


@pytest.mark.parametrize("data", [b"\x00", b"\x08\x00\x00\x00abcd", b"\x03\x00\x00\x00abc"])
def test_a_damaged_map_is_refused(data: bytes) -> None:
    with pytest.raises(BadFileError, match="the character map is damaged: 'map'"):
        Charsmap(data, "map")


@given(st.binary(max_size=80), st.text(max_size=8))
def test_whatever_is_in_the_trie_the_text_comes_out(noise: bytes, text: str) -> None:
    units = noise[: len(noise) // 4 * 4]
    for longest in (False, True):
        Charsmap(len(units).to_bytes(4, "little") + units + b"ab\0", "map", longest)(text)
