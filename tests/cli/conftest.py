"""The command line in this process, with a home, a store and a cache of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from modelc.cli import main
from modelc.settings import cache_folder
from tests.formats.gguf_builder import small_gguf


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Modelc = Callable[..., Result]
COMPILED = cache_folder()  # before the home changes: compiled code is the same for every test


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, store and cache; no settings from outside."""
    home = tmp_path / "home"
    home.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.setenv("MODELC_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("MODELC_CACHE", str(COMPILED))
    monkeypatch.setenv("COLUMNS", "100")
    for variable in ("MODELC_BIND", "MODELC_PORT", "MODELC_API_KEY", "MODELC_DEFAULT_MODEL", "MODELC_DEBUG"):
        monkeypatch.delenv(variable, raising=False)
    return home


@pytest.fixture(autouse=True)
def packed_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for packed weights."""
    for module in ("resolve", "inventory", "hub.pulling"):
        monkeypatch.setattr(f"modelc.{module}.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "packed"


@pytest.fixture
def modelc(capsys: pytest.CaptureFixture[str]) -> Modelc:
    """Runs a command line and returns exit code and output."""

    def run(*tokens: object) -> Result:
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """A small GGUF file: three tensors, all kinds of metadata."""
    path = tmp_path / "Tiny-Model.gguf"
    path.write_bytes(small_gguf().build())
    return path
