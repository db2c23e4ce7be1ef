import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Modelc
from tests.formats.gguf_builder import small_gguf
from tests.hub.fake_server import FakeServer, running


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setattr("modelc.hub.client.BACK_OFF_S", 0.001)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(FakeServer()) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.repository("user/tiny", {"tiny.gguf": small_gguf().build()})
        yield server


def test_pull_says_what_it_stored(modelc: Modelc, server: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "store" / "tiny.v1.modelc"
    result = modelc("pull", "user/tiny")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"pulled {path} (")
    assert modelc("pull", "user/tiny", "--quiet").out == f"{path.with_name('tiny.v2.modelc')}\n"


def test_what_goes_wrong_is_one_line(modelc: Modelc, server: FakeServer) -> None:
    result = modelc("pull", "user/nothing")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"modelc: the server has no such file: {server.url}/api/models/user/nothing/revision/main" + (
        "?blobs=true: got status 404\n"
    )
    assert modelc("pull", "nothing").code == 2


def test_the_hub_is_searched(modelc: Modelc, server: FakeServer) -> None:
    entry = {"id": "user/tiny", "downloads": 12345, "likes": 7, "lastModified": "2026-01-02T03:04:05Z", "gated": False}
    server.put("/api/models", [entry, {"id": "user/x", "gated": "manual"}])
    lines = modelc("search", "--hub", "tiny").out.splitlines()
    assert lines[1].split() == ["user/tiny", "12.3K", "7", "2026-01-02"]
    assert lines[2].split() == ["user/x", "0", "0", "manual"]
    assert json.loads(modelc("search", "--hub", "tiny", "--json").out)[0]["downloads"] == 12345
    server.put("/api/models", [])
    result = modelc("search", "--hub", "tiny")
    assert (result.code, result.err) == (
        1,
        "modelc: no model on the hub matches: got 'tiny'; use fewer or other words\n",
    )
