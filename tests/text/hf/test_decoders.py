from typing import Any

import pytest

from modelc.errors import UnsupportedError
from modelc.text.hf.decoders import decoder_of
from modelc.text.hf.part import Part

REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
BYTES = {"type": "ByteFallback"}
FUSE = {"type": "Fuse"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def decode(texts: list[str], kind: str | None, **fields: Any) -> bytes:
    found = decoder_of(None if kind is None else Part({"type": kind, **fields}, "decoder"))
    return b"".join(found.token_bytes(text, at == 0) for at, text in enumerate(texts))


def in_order(texts: list[str], *steps: dict[str, Any]) -> bytes:
    return decode(texts, "Sequence", decoders=list(steps))


def test_without_one_blanks_join() -> None:
    assert decode(["a", "b"], None) == b"a b"


def test_byte_level_gives_bytes() -> None:
    assert decode(["Ġa", "Ã", "©"], "ByteLevel") == " aé".encode()


def test_metaspace_drops_the_first_mark_only() -> None:
    assert decode(["▁a", "▁b"], "Metaspace") == b"a b"
    assert decode(["▁a", "▁b"], "Metaspace", prepend_scheme="never") == b" a b"


def test_word_piece_joins_and_tidies() -> None:
    assert decode(["it", "'", "##s", "ok", "##ay", "."], "WordPiece") == b"it 's okay."
    assert decode(["a", "."], "WordPiece", cleanup=False) == b"a ."
    assert decode(["a", "@@b"], "WordPiece", prefix="@@") == b"ab"


def test_sentencepiece_strips_one_space_and_joins_bytes() -> None:
    steps = (REPLACE, BYTES, FUSE, STRIP)
    assert in_order(["▁▁a", "▁b", "<0xC3>", "<0xA9>", "<0xZZ>"], *steps) == " a bé<0xZZ>".encode()
    assert in_order(["<0x20>", "▁a"], *steps) == b" a"


def test_bytes_may_be_read_before_or_after_other_steps() -> None:
    assert in_order(["<0x41>", "▁b"], BYTES, REPLACE) == b"A b"
    assert in_order(["<0x41>", "▁b"], REPLACE, BYTES) == b"A b"


def test_before_joining_each_token_is_stripped() -> None:
    assert in_order(["  a", " b "], {"type": "Strip", "content": " ", "start": 1, "stop": 1}) == b" ab"


def test_one_character_may_be_replaced_after_joining_too() -> None:
    assert in_order(["a▁", "b"], FUSE, REPLACE) == b"a b"


@pytest.mark.parametrize(
    "steps",
    [
        [FUSE, {"type": "Strip", "content": " ", "start": 0, "stop": 1}],
        [FUSE, {"type": "Strip", "content": " ", "start": 2, "stop": 0}],
        [FUSE, {"type": "Replace", "pattern": {"String": "ab"}, "content": "c"}],
        [FUSE, STRIP, REPLACE],
        [{"type": "ByteLevel"}, REPLACE],
    ],
)
def test_steps_that_need_the_whole_text_are_refused(steps: list[dict[str, Any]]) -> None:
    with pytest.raises(UnsupportedError, match="this decoder is not supported at this place"):
        in_order([], *steps)
