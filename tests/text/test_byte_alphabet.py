from modelc.text.byte_alphabet import BYTE_CHARS, bytes_to_chars, chars_to_bytes, utf8


def test_visible_bytes_stand_for_themselves_and_the_others_follow_from_u0100() -> None:
    assert BYTE_CHARS[ord("A")] == "A"
    assert BYTE_CHARS[0xFF] == "ÿ"
    assert BYTE_CHARS[0] == "\u0100"
    assert BYTE_CHARS[ord(" ")] == "Ġ"
    assert BYTE_CHARS[ord("\n")] == "Ċ"
    assert BYTE_CHARS[0xAD] == "\u0143"  # the soft hyphen is the last of the 68 that are not visible


def test_every_byte_has_one_character_and_comes_back() -> None:
    everything = bytes(range(256))
    assert len(set(BYTE_CHARS)) == 256
    assert all(char.isprintable() and not char.isspace() for char in BYTE_CHARS)
    assert chars_to_bytes(bytes_to_chars(everything)) == everything


def test_text_outside_the_alphabet_is_taken_as_it_is() -> None:
    assert chars_to_bytes("▁a") == "▁a".encode()


def test_bytes_that_were_no_utf8_come_out_as_they_were() -> None:
    assert utf8("a\udcff") == b"a\xff"
    assert utf8("a\ud800") == b"a?"
