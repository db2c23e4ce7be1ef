"""A server that stands for all others, and a home without settings of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from modelc.store import Store
from tests.hub.fake_server import FakeServer, running

SETTINGS = ("HF_TOKEN", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_CONFIG_FILE")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeServer]:
    """The hub (HF_ENDPOINT) and the package index of the test; tries follow each other at once."""
    monkeypatch.setattr("modelc.hub.client.BACK_OFF_S", 0.001)
    monkeypatch.setattr("modelc.hub.pulling.cache_folder", lambda: tmp_path / "cache")
    for variable in SETTINGS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(FakeServer()) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """Where downloads are kept until they are whole."""
    return tmp_path / "cache" / "downloads"
