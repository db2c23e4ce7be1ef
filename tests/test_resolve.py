from collections.abc import Callable
from pathlib import Path

import pytest

from modelc.errors import BadFileError, NotFoundError, WriteError
from modelc.formats.modelc import read_header
from modelc.resolve import as_modelc, find_model, parts_of, stem_of
from modelc.store import Store
from tests.formats.gguf_builder import small_gguf
from tests.formats.safetensors_builder import write_shards


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """An empty cache for packed weights; returns what is in it."""
    monkeypatch.setattr("modelc.resolve.cache_folder", lambda: tmp_path / "cache")
    return lambda: sorted(path.name for path in (tmp_path / "cache" / "packed").glob("*.modelc"))


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny.gguf"
    path.write_bytes(small_gguf().build())
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.add("tiny", lambda path: path.write_text("packed"))
    return store


def test_a_name_in_the_store_wins_over_a_file_of_that_name(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny").write_text("")
    assert find_model("tiny", store) == store.folder / "tiny.modelc"
    assert find_model("tiny:1", store) == store.folder / "tiny.v1.modelc"
    assert find_model("./tiny", store) == Path("tiny")


def test_what_is_not_in_the_store_is_a_path(store: Store, gguf: Path) -> None:
    assert find_model(str(gguf), store) == gguf


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (
            "user/model-7b.v0.1",
            r"no such file or model: .*; from the hub it comes with `modelc pull user/model-7b\.v0\.1`",
        ),
        ("user/model.gguf", r"no such file or model: user/model\.gguf; check the path, or see `modelc list`"),
        ("tinny", r"no model 'tinny' in the store: .*; did you mean 'tiny'\?"),
        ("tiny:9", "has no version 9"),
        ("Tinny.gguf", r"no such file or model: Tinny\.gguf; did you mean 'Tiny\.gguf'\?"),
        ("no/such/file.gguf", "no such file or model: .*; check the path"),
        ("", "no model '' in the store"),
    ],
)
def test_what_is_neither_is_an_error_with_the_nearest(
    store: Store, gguf: Path, monkeypatch: pytest.MonkeyPatch, reference: str, told: str
) -> None:
    monkeypatch.chdir(gguf.parent)
    with pytest.raises(NotFoundError, match=told):
        find_model(reference, store)


def test_a_modelc_file_is_taken_as_it_is(tmp_path: Path) -> None:
    assert as_modelc(tmp_path / "x.modelc") == tmp_path / "x.modelc"


def test_weights_are_packed_once(gguf: Path, cache: Callable[[], list[str]]) -> None:
    calls: list[str] = []
    packed = as_modelc(gguf, lambda done, total, label: calls.append(label))
    assert read_header(packed).name == "tiny"
    assert calls
    calls.clear()
    assert as_modelc(gguf, lambda done, total, label: calls.append(label)) == packed
    assert calls == []
    assert cache() == [packed.name]


def test_changed_weights_are_packed_again_and_the_old_ones_deleted(gguf: Path, cache: Callable[[], list[str]]) -> None:
    before = as_modelc(gguf)
    gguf.write_bytes(gguf.read_bytes() + bytes(32))
    after = as_modelc(gguf)
    assert cache() == [after.name] != [before.name]


def test_damaged_weights_leave_nothing_in_the_cache(gguf: Path, cache: Callable[[], list[str]]) -> None:
    gguf.write_bytes(gguf.read_bytes()[:200])
    with pytest.raises(BadFileError):
        as_modelc(gguf)
    assert cache() == []


def test_a_cache_that_cannot_be_written_says_what_to_do(gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(WriteError, match="choose another folder with MODELC_CACHE"):
        as_modelc(gguf)


def test_all_parts_of_a_split_file_count(tmp_path: Path) -> None:
    names = [f"a[1]-0000{number}-of-00002.gguf" for number in (1, 2)]
    for name in (*names, "a[1]-00001-of-00003.gguf", "b-00001-of-00002.gguf"):
        (tmp_path / name).write_text("")
    assert parts_of(tmp_path / names[1]) == [tmp_path / name for name in names]
    assert stem_of(tmp_path / names[1]) == "a[1]"
    assert stem_of(tmp_path / "SmolLM2.Q4_1.gguf") == "SmolLM2.Q4_1"
    assert stem_of(tmp_path / "model-00001-of-00002.safetensors") == "model"
    assert stem_of(tmp_path / "model.safetensors.index.json") == "model"


def test_a_folder_is_packed_under_its_name_and_again_when_a_file_of_it_changes(
    tmp_path: Path, cache: Callable[[], list[str]]
) -> None:
    folder = tmp_path / "Tiny-0.5B"
    folder.mkdir()
    index = write_shards(folder)
    assert stem_of(folder) == "Tiny-0.5B"
    assert parts_of(folder) == [index, *sorted(folder.glob("*.safetensors"))]
    before = as_modelc(folder)
    assert read_header(before).name == "tiny-0.5b"
    assert as_modelc(folder) == before
    (folder / "config.json").write_text('{"model_type": "llama"}')
    after = as_modelc(folder)
    assert read_header(after).architecture == "llama"
    assert cache() == [after.name] != [before.name]
