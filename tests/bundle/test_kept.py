from pathlib import Path

import pytest

from modelc.bundle.kept import keep, kept


def test_what_was_kept_is_found(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "name"
    assert kept(file) is None
    assert keep(file, b"content")
    assert kept(file) == b"content"
    assert [each.name for each in file.parent.iterdir()] == ["name"]


@pytest.mark.parametrize("at", [0, 3, 7, 20, -1])
def test_a_flipped_bit_is_noticed(tmp_path: Path, at: int) -> None:
    file = tmp_path / "name"
    keep(file, b"content")
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    assert kept(file) is None


@pytest.mark.parametrize("length", [0, 10, 38])
def test_half_a_file_is_noticed(tmp_path: Path, length: int) -> None:
    file = tmp_path / "name"
    keep(file, b"content")
    file.write_bytes(file.read_bytes()[:length])
    assert kept(file) is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert not keep(tmp_path / "file" / "name", b"content")
