import os
from pathlib import Path

import pytest

from modelc import library
from modelc.copying import copy_model
from modelc.errors import BadFileError, BadInputError, NotFoundError, StoreError
from modelc.store import Store
from tests.formats.gguf_builder import small_gguf


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "a.gguf").write_bytes(small_gguf().build())
    store = Store(tmp_path / "store")
    library.pack(tmp_path / "a.gguf", name="tiny", store=store)
    return store


def test_a_copy_in_the_store_is_another_name_of_the_same_bytes(store: Store) -> None:
    copy = copy_model("tiny:1", "second", store)
    assert copy == store.folder / "second.v1.modelc"
    assert copy.samefile(store.folder / "tiny.v1.modelc")
    store.remove("tiny", every_version=True)
    assert store.get("second").active == 1


def test_where_links_do_not_exist_the_bytes_are_copied(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    copy = copy_model("tiny", "second", store)
    assert copy.read_bytes() == store.find("tiny").read_bytes()
    assert not copy.samefile(store.find("tiny"))


def test_a_copy_outside_the_store_is_a_file_of_its_own(store: Store, tmp_path: Path) -> None:
    shown: list[int] = []
    copy = copy_model("tiny", str(tmp_path / "out.modelc"), store, lambda done, total, label: shown.append(done))
    assert copy.read_bytes() == store.find("tiny").read_bytes()
    assert not copy.samefile(store.find("tiny"))
    assert shown[-1] == copy.stat().st_size
    assert copy_model(str(copy), "third", store).parent == store.folder


@pytest.mark.parametrize("target", ["tiny", "TINY"])
def test_nothing_in_the_store_is_overwritten(store: Store, target: str) -> None:
    with pytest.raises(StoreError, match="there is a model 'tiny' already"):
        copy_model("tiny", target, store)
    assert list(store.get("tiny").versions) == [1]


def test_no_file_is_overwritten(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out.modelc").write_text("mine")
    with pytest.raises(StoreError, match="this file exists"):
        copy_model("tiny", str(tmp_path / "out.modelc"), store)
    with pytest.raises(BadInputError, match="the target is a folder"):
        copy_model("tiny", str(tmp_path), store)
    assert (tmp_path / "out.modelc").read_text() == "mine"


def test_only_packed_models_are_copied(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"not a \.modelc file"):
        copy_model(str(tmp_path / "a.gguf"), "second", store)
    with pytest.raises(NotFoundError, match="did you mean 'tiny'"):
        copy_model("tinny", "second", store)
    with pytest.raises(BadInputError, match="not a name"):
        copy_model("tiny", "a b", store)
    assert [model.name for model in store.models()] == ["tiny"]
