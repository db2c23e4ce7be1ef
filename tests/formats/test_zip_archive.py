import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.mapping import map_file
from modelc.formats.zip_archive import content, members_of
from tests.formats.pytorch_builder import zip_of


def read(path: Path) -> dict[str, bytes]:
    data = map_file(path)
    return {name: content(data, member, path) for name, member in members_of(data, path).items()}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_come_back_as_they_were(tmp_path: Path, method: int) -> None:
    members = {"a/b": bytes(range(256)) * 40, "empty": b"", "naïve": b"x"}
    (tmp_path / "x.zip").write_bytes(zip_of(members, method))
    assert read(tmp_path / "x.zip") == members


def test_a_comment_and_data_descriptors_are_allowed(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    for comment in (b"made here", b"PK\5\6 and then " * 3):
        pipe = Pipe()
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("a", b"content")
            file.comment = comment
        assert pipe.getvalue()[6] & 8  # sizes follow the content
        (tmp_path / "x.zip").write_bytes(pipe.getvalue())
        assert read(tmp_path / "x.zip") == {"a": b"content"}


def test_64_bit_sizes_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file, file.open("a", "w", force_zip64=True) as member:
        member.write(b"content")
    assert read(tmp_path / "x.zip") == {"a": b"content"}


def test_a_64_bit_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    members = {f"m{number}": bytes([number]) for number in range(5)}
    whole = zip_of(members)
    assert b"PK\x06\x06" in whole
    # What does not fit is written as its largest value, as an archive of more than 65,535 members has it.
    end = whole.rfind(b"PK\x05\x06")
    (tmp_path / "x.zip").write_bytes(whole[: end + 8] + b"\xff" * 12 + whole[end + 20 :])
    assert read(tmp_path / "x.zip") == members


ZIP = zip_of({"a": b"content", "b": bytes(range(100))})
CENTRAL = ZIP.find(b"PK\x01\x02")
END = ZIP.find(b"PK\x05\x06")


def put(at: int, new: bytes) -> bytes:
    return ZIP[:at] + new + ZIP[at + len(new) :]


# What is wrong -> the message, and the archive. Places are those of the fields in PKWARE's description.
HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "another file": ("not a zip archive: .*got a GGUF file", lambda: b"GGUF"),
    "no end": ("the zip archive has no end", lambda: ZIP[:END]),
    "half an end": ("the zip archive has no end", lambda: ZIP[:-1]),
    "65535 members": ("too many zip members: .*got 65534", lambda: put(END + 10, b"\xfe\xff")),
    "a member too many": ("too many zip members", lambda: put(END + 10, b"\x03\0")),
    "directory past the end": ("directory runs past its end", lambda: put(END + 16, b"\0\0\0\x70")),
    "directory elsewhere": ("a damaged zip directory", lambda: put(END + 16, b"\0\0\0\0")),
    "member elsewhere": ("not where it should be: .*got 'a'", lambda: put(CENTRAL + 42, b"\1\0\0\0")),
    "member past the end": ("not where it should be", lambda: put(CENTRAL + 42, b"\0\0\0\x70")),
    "name without end": ("a damaged zip directory", lambda: put(CENTRAL + 28, b"\xff\xff")),
    "2 GB of stored bytes": ("member 'a' has a wrong length", lambda: put(CENTRAL + 20, b"\0\0\0\x7f\0\0\0\x7f")),
    "sizes that differ": ("member 'a' has a wrong length", lambda: put(CENTRAL + 24, b"\1\0\0\0")),
    "64-bit sizes that are missing": ("without its 64-bit size", lambda: put(CENTRAL + 24, b"\xff\xff\xff\xff")),
    "one name twice": ("two zip members have the same name: .*got 'a'", lambda: ZIP.replace(b"b", b"a")),
    "one place twice": ("zip members overlap", lambda: put(CENTRAL + 47 + 42, b"\0\0\0\0")),
    "a changed byte": ("member 'a' is damaged: .*checksum", lambda: ZIP.replace(b"content", b"c0ntent")),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_one_clear_error(tmp_path: Path, case: str) -> None:
    message, make = HOSTILE[case]
    (tmp_path / "x.zip").write_bytes(make())
    with pytest.raises(BadFileError, match=message):
        read(tmp_path / "x.zip")


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    for length in range(1, len(ZIP)):
        (tmp_path / "x.zip").write_bytes(ZIP[:length])
        with pytest.raises(BadFileError):
            read(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("place", "new", "message"),
    [(8, b"\1\0", "zip member 'a' is encrypted"), (10, b"\x0e\0", "compressed in an unknown way: .*got method 14")],
)
def test_what_zip_can_and_modelc_cannot_is_named(tmp_path: Path, place: int, new: bytes, message: str) -> None:
    (tmp_path / "x.zip").write_bytes(put(CENTRAL + place, new))
    with pytest.raises(UnsupportedError, match=message):
        read(tmp_path / "x.zip")


def test_a_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zip_of({"zeros": bytes(1 << 24)}, zipfile.ZIP_DEFLATED))
    with pytest.raises(BadFileError, match=r"zip member 'zeros' is too large: .*got 16777216, expected at most 13"):
        read(tmp_path / "x.zip")


@pytest.mark.parametrize("n_bytes", [99, 101])
def test_a_member_that_unpacks_to_another_length_is_refused(tmp_path: Path, n_bytes: int) -> None:
    whole = zip_of({"a": bytes(100)}, zipfile.ZIP_DEFLATED)
    at = whole.find(b"PK\x01\x02") + 24
    (tmp_path / "x.zip").write_bytes(whole[:at] + n_bytes.to_bytes(4, "little") + whole[at + 4 :])
    with pytest.raises(BadFileError, match="zip member 'a' has a wrong length"):
        read(tmp_path / "x.zip")
