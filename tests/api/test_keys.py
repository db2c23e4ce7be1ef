from pathlib import Path

import pytest

from modelc.api.keys import KeyRing, read_keys
from modelc.errors import BadInputError, ModelcError


def test_keys_come_from_the_command_line_and_from_files(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# of the team\n\n  one  \ntwo\r\none\n", newline="")
    assert read_keys(["zero", f"@{path}", "zero"]) == ("zero", "one", "two")
    assert read_keys([]) == ()


@pytest.mark.parametrize("key", ["", " ", " a", "a\n", "a\0b", "a\r\nb"])
def test_a_key_that_no_header_could_carry_is_refused(key: str) -> None:
    with pytest.raises(BadInputError, match="API key"):
        read_keys([key])


def test_a_file_without_keys_is_refused(tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("comments", b"# nothing\n"), ("binary", b"\xff\xfe")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(BadInputError):
            read_keys([f"@{path}"])
    for missing in (tmp_path / "no", tmp_path, Path("/dev/zero"), Path()):
        with pytest.raises(ModelcError):
            read_keys([f"@{missing}"])


@pytest.mark.parametrize(
    ("headers", "opens"),
    [
        ([], False),
        ([(b"authorization", b"Bearer one")], True),
        ([(b"authorization", b"bearer   two ")], True),
        ([(b"x-api-key", b"two")], True),
        ([(b"x-api-key", b"wrong"), (b"authorization", b"Bearer two")], True),
        ([(b"authorization", b"Basic one")], False),
        ([(b"authorization", b"Bearer")], False),
        ([(b"authorization", b"Bearer ")], False),
        ([(b"authorization", b"Bearer on")], False),
        ([(b"authorization", b"Bearer one one")], False),
        ([(b"x-api-key", b"")], False),
        ([(b"cookie", b"one")], False),
    ],
)
def test_a_ring_opens_to_its_keys_alone(headers: list[tuple[bytes, bytes]], opens: bool) -> None:
    assert KeyRing(["one", "two"]).opens(headers) is opens
