from hypothesis import given
from hypothesis import strategies as st

from modelc.text import BpeTokenizer, StreamDecoder
from tests.text.small_vocabulary import CONTROL, metadata

BYTES = BpeTokenizer.byte_fallback()


def stream(data: bytes) -> list[str]:
    decoder = StreamDecoder(BYTES)
    return [*map(decoder.push, data), decoder.flush()]


def test_a_character_comes_when_its_last_byte_does() -> None:
    assert stream("a🙂é".encode()) == ["a", "", "", "", "🙂", "", "é", ""]


def test_a_character_that_is_never_finished_is_replaced_at_the_end() -> None:
    assert stream("🙂".encode()[:3]) == ["", "", "", "\ufffd"]


def test_bytes_that_begin_no_character_are_replaced_at_once() -> None:
    assert stream(b"\xffa\x80") == ["\ufffd", "a", "\ufffd", ""]
    assert stream(b"\xc3a") == ["", "\ufffda", ""]


def test_it_can_be_used_again_after_its_end() -> None:
    decoder = StreamDecoder(BYTES)
    assert [decoder.push(0xC3), decoder.flush(), decoder.push(ord("a"))] == ["", "\ufffd", "a"]


def test_tokens_of_several_characters_and_control_tokens() -> None:
    tokenizer = BpeTokenizer.from_gguf(metadata("a b", special={"<|im_end|>": CONTROL}))
    ids = [256, 257, 0xC3, 257, 0xA9]
    assert list(map(StreamDecoder(tokenizer).push, ids)) == ["ab", "<|im_end|>", "", "\ufffd<|im_end|>", "\ufffd"]
    assert list(map(StreamDecoder(tokenizer, skip_special=True).push, ids)) == ["ab", "", "", "", "é"]
    shown = StreamDecoder(tokenizer, skip_special=True, shown=tokenizer.special_ids)
    assert "".join(map(shown.push, ids)) == tokenizer.decode(ids)


@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)))
def test_the_stream_joined_is_the_whole_decoded(data: bytes) -> None:
    pieces = stream(data)
    assert "".join(pieces) == BYTES.decode(data)
    assert "".join(pieces) == data.decode("utf-8", "replace")


@given(st.text(max_size=20))
def test_valid_text_never_shows_a_replacement(text: str) -> None:
    assert "\ufffd" not in "".join(stream(text.replace("\ufffd", "").encode()))
