import json
import os
from pathlib import Path

import pytest

from modelc import inventory as module
from modelc import library, summary
from modelc.inventory import inventory
from modelc.store import Store
from tests.formats.gguf_builder import small_gguf


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "listed"


@pytest.fixture
def store(tmp_path: Path, notes: Path) -> Store:
    (tmp_path / "a.gguf").write_bytes(small_gguf().build())
    store = Store(tmp_path / "store")
    for name in ("tiny", "tiny", "other"):
        library.pack(tmp_path / "a.gguf", name=name, store=store)
    return store


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise AssertionError(f"{path} was opened")

    monkeypatch.setattr(summary, "inspect", fail)


def test_every_version_is_listed_with_its_facts(store: Store) -> None:
    rows = inventory(store)
    assert [(row.name, row.version, row.active) for row in rows] == [
        ("other", 1, True),
        ("tiny", 1, False),
        ("tiny", 2, True),
    ]
    assert (rows[0].architecture, rows[0].parameters, rows[0].error) == ("llama", 75, None)
    assert rows[0].file_bytes == Path(rows[0].path).stat().st_size


def test_files_that_were_seen_are_not_opened_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = inventory(store)
    forbid_reading(monkeypatch)
    assert inventory(store) == first


def test_a_file_that_has_changed_is_opened_again(store: Store) -> None:
    inventory(store)
    path = store.folder / "tiny.v1.modelc"
    path.write_bytes(path.read_bytes()[:100])
    row = inventory(store)[1]
    assert row.parameters is None
    assert row.error is not None and "tiny.v1.modelc" in row.error
    assert inventory(store)[1] == row  # damage is looked at each time


def test_what_is_gone_from_the_store_is_gone_from_the_note(store: Store, notes: Path) -> None:
    inventory(store)
    store.remove("tiny", every_version=True)
    assert [row.name for row in inventory(store)] == ["other"]
    assert list(json.loads(next(notes.iterdir()).read_text())["files"]) == ["other.v1.modelc"]


@pytest.mark.parametrize("text", ["", "[]", '{"modelc": "0"}', '{"files": {"other.v1.modelc": {"facts": 1}}}', "\0"])
def test_a_damaged_note_is_made_anew(store: Store, notes: Path, text: str) -> None:
    first = inventory(store)
    next(notes.iterdir()).write_text(text)
    assert inventory(store) == first


def test_a_cache_that_cannot_be_written_changes_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "file")
    assert [row.name for row in inventory(store)] == ["other", "tiny", "tiny"]


def test_a_hundred_models_are_listed_without_opening_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        os.link(store.folder / "other.v1.modelc", store.folder / f"copy{number}.v1.modelc")
    inventory(store)
    forbid_reading(monkeypatch)
    assert len(inventory(store)) == 103
