import importlib.metadata
import importlib.resources
import io
import pkgutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelc.bundle.boot.bytecode import INDEX, compiled
from modelc.bundle.boot.finder import Finder, Modules

FILES = {
    "carried/__init__.py": b"from carried.inner import VALUE",
    "carried/inner.py": b"VALUE = 5\n",
    "carried/data/table.json": b"[1]",
    "carried_part-1.5.dist-info/METADATA": b"Metadata-Version: 2.1\nName: carried-part\nVersion: 1.5\n",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    sources = io.BytesIO()
    with zipfile.ZipFile(sources, "w") as target:
        for name, content in FILES.items():
            target.writestr(name, content)
    path = tmp_path / "modules.zip"
    path.write_bytes(compiled(sources.getvalue()))
    return path


@pytest.fixture
def finder(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Finder]:
    """In its place among Python's own."""
    found = Finder(Modules(str(archive)), {"carried/part.cpython-999-none.so": "/none", "carried/part2.so": "/none/2"})
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    yield found
    for name in [name for name in sys.modules if name.partition(".")[0] == "carried"]:
        del sys.modules[name]


def test_the_index_says_where_every_member_is(archive: Path) -> None:
    modules = Modules(str(archive))
    with zipfile.ZipFile(archive) as opened:
        assert {INDEX, *modules.members} == set(opened.namelist())
        assert all(modules.read(name) == opened.read(name) for name in modules.members)


def test_modules_are_imported_from_the_archive(finder: Finder, archive: Path) -> None:
    import carried  # type: ignore[import-not-found]
    import carried.inner  # type: ignore[import-not-found]

    assert carried.VALUE == 5
    assert carried.__file__ == str(archive / "carried" / "__init__.pyc")
    assert carried.inner.__spec__.parent == "carried"
    with pytest.raises(ModuleNotFoundError):
        import carried.missing  # type: ignore[import-not-found]


def test_modules_come_from_an_archive_whose_file_was_deleted(finder: Finder, archive: Path) -> None:
    archive.unlink()
    import carried

    assert carried.VALUE == 5
    if sys.platform == "linux":
        assert importlib.resources.files("carried").joinpath("data/table.json").read_bytes() == b"[1]"


def test_data_beside_modules_is_found(finder: Finder) -> None:
    assert pkgutil.get_data("carried", "data/table.json") == b"[1]"
    assert importlib.resources.files("carried").joinpath("data/table.json").read_bytes() == b"[1]"
    with pytest.raises(FileNotFoundError):
        pkgutil.get_data("carried", "data/none")


def test_packages_tell_their_versions(finder: Finder) -> None:
    assert importlib.metadata.version("Carried.Part") == "1.5"
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("carried")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems load libraries by their paths only")
def test_extension_modules_are_found_after_their_files_were_deleted(archive: Path, tmp_path: Path) -> None:
    library = tmp_path / "part.so"
    library.write_bytes(b"content")
    finder = Finder(Modules(str(archive)), {"carried/part.so": str(library)})
    library.unlink()
    spec = finder.find_spec("carried.part")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).read_bytes() == b"content"


def test_extension_modules_are_found_by_name(finder: Finder) -> None:
    spec = finder.find_spec("carried.part2")
    assert spec is not None
    assert spec.origin == "/none/2"
    assert finder.find_spec("carried.part3") is None
