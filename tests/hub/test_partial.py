import json
from pathlib import Path

import pytest

from modelc.hub import partial
from modelc.hub.partial import PartialFile


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(partial, "MIN_SEGMENT_BYTES", 10)
    return tmp_path / "a.part"


def test_a_new_file_lacks_everything(path: Path) -> None:
    file = PartialFile(path, 25)
    assert file.missing == [0, 1, 2]
    assert [file.span(number) for number in file.missing] == [(0, 10), (10, 20), (20, 25)]
    assert (file.done_bytes, file.leading_bytes, path.stat().st_size) == (0, 0, 25)


def test_what_is_there_is_counted_by_segment_and_from_the_front(path: Path) -> None:
    file = PartialFile(path, 25)
    file.add(1, 10)
    file.add(0, 4)
    assert (file.missing, file.span(0)) == ([0, 2], (4, 10))
    assert (file.done_bytes, file.leading_bytes) == (14, 4)
    file.add(0, 6)
    assert file.leading_bytes == 20
    file.add(2, 5)
    assert (file.missing, file.leading_bytes) == ([], 25)


def test_what_was_noted_is_taken_up_again(path: Path) -> None:
    file = PartialFile(path, 25)
    file.add(1, 7)
    file.note()
    again = PartialFile(path, 25)
    assert (again.done_bytes, again.span(1)) == (7, (17, 20))
    assert PartialFile(path, 26).done_bytes == 0  # another file


def test_a_note_without_its_bytes_counts_for_nothing(path: Path) -> None:
    file = PartialFile(path, 25)
    file.add(1, 7)
    file.note()
    path.write_bytes(b"short")
    assert PartialFile(path, 25).done_bytes == 0


def test_large_files_have_few_segments(path: Path) -> None:
    file = PartialFile(path, 100_000)
    assert len(file.missing) == 64
    file.note()
    assert len(json.loads(path.with_name("a.part.json").read_text())["done"]) == 64
