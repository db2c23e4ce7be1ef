import hashlib
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from modelc.errors import BadFileError, BusyError, ModelcError, NetworkError, NotFoundError
from modelc.hub import partial
from modelc.hub.client import Client
from modelc.hub.remote import RemoteFile
from modelc.hub.transfer import fetch, probe
from tests.hub.fake_server import FakeServer, Page, git_blob

CONTENT = random.Random(1).randbytes(300_000)
SEGMENT = 50_000


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "MIN_SEGMENT_BYTES", SEGMENT)


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def remote(server: FakeServer, **changed: Any) -> RemoteFile:
    values = {"size": len(CONTENT), "digest": sha256(CONTENT)} | changed
    return RemoteFile("model.bin", f"{server.url}/model.bin", **values)


def get(file: RemoteFile, target: Path) -> list[tuple[int, int]]:
    shown: list[tuple[int, int]] = []
    with Client() as client:
        fetch(client, file, target, lambda done, total: shown.append((done, total)))
    return shown


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder / "model.bin"


def test_a_file_comes_in_ranges_over_several_requests(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT)
    shown = get(remote(server), target)
    assert target.read_bytes() == CONTENT
    assert server.counts()["/model.bin"] == 6
    assert shown[-1] == (300_000, 300_000)
    assert files(target.parent) == ["model.bin"]


def test_redirects_are_followed_and_the_token_stays_with_the_host_it_is_meant_for(
    server: FakeServer, target: Path
) -> None:
    server.put("/elsewhere", CONTENT)
    port = server.url.rpartition(":")[2]
    server.put("/model.bin", redirect=f"http://localhost:{port}/elsewhere", authorization="Bearer secret")
    get(remote(server, headers={"Authorization": "Bearer secret"}), target)
    assert target.read_bytes() == CONTENT
    assert all("authorization" not in headers for path, headers in server.asked if path == "/elsewhere")


@pytest.mark.parametrize("digest", [sha256(CONTENT), f"git-sha1:{git_blob(CONTENT)}", None])
def test_checksums_of_both_kinds_are_known(server: FakeServer, target: Path, digest: str | None) -> None:
    server.put("/model.bin", CONTENT)
    get(remote(server, digest=digest), target)
    assert target.read_bytes() == CONTENT


def test_connections_that_break_are_taken_up_where_they_broke(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT, cut_after=20_000)
    get(remote(server), target)
    assert target.read_bytes() == CONTENT
    starts = [headers["range"] for _, headers in server.asked]
    assert len(set(starts)) == len(starts) == 18


@pytest.mark.parametrize(
    "fault",
    [
        Page(b"slow down", 429, {"Retry-After": "0"}),
        Page(b"", 503),
        Page(b"", 500),
        Page(b"", 408),
        Page(CONTENT, cut_after=0),
    ],
    ids=["429", "503", "500", "408", "cut"],
)
def test_what_may_pass_is_tried_again(server: FakeServer, target: Path, fault: Page) -> None:
    server.put("/model.bin", CONTENT, faults=deque([fault]))
    get(remote(server), target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("page", "error", "told"),
    [
        (Page(b"Not Found", 404), NotFoundError, "the server has no such file"),
        (Page(b"no", 401), NetworkError, "refuses access.*status 401: no; if an account is needed, set HF_TOKEN"),
        (Page(b"no", 403, {"X-Error-Code": "GatedRepo"}), NetworkError, "must be granted first.*then set HF_TOKEN"),
        (Page(b"", 429, {"Retry-After": "7200"}), BusyError, "fewer requests.*try again in 7200 s"),
        (Page(b"", 500), NetworkError, "the server refuses.*status 500; try again later"),
        (Page(b"", 416), NetworkError, "the server refuses.*status 416"),
        (Page(CONTENT, cut_after=0), NetworkError, "the connection to 127.0.0.1 breaks.*what has come is kept"),
        (Page(CONTENT[:-1]), NetworkError, "the file is another one than before.*expected 300000 bytes"),
        (Page(CONTENT, headers={"Content-Range": "bytes 7-9/300000"}), NetworkError, "another part than was asked"),
        (Page(CONTENT, headers={"Content-Range": "rubbish"}), NetworkError, "another part than was asked"),
        (Page(b"", 302, redirect="/model.bin"), NetworkError, "redirects in circles"),
    ],
    ids=["404", "401", "gated", "429", "500", "416", "cut", "length", "range", "rubbish", "circle"],
)
def test_what_does_not_pass_is_told_in_one_line(
    server: FakeServer, target: Path, page: Page, error: type[ModelcError], told: str
) -> None:
    server.pages["/model.bin"] = page
    with pytest.raises(error, match=told) as caught:
        get(remote(server), target)
    assert "\n" not in str(caught.value)
    assert not target.exists()


def test_a_server_that_is_not_there_is_told(target: Path, server: FakeServer) -> None:
    file = RemoteFile("x", "http://127.0.0.1:1/x", 10, None)
    with pytest.raises(NetworkError, match=r"127\.0\.0\.1 cannot be reached.*check the network"):
        get(file, target)


def test_a_server_that_promises_more_than_it_sends_is_noticed(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT, ranges=False, promised=len(CONTENT) + 10)
    with pytest.raises(NetworkError, match="breaks"):
        get(remote(server), target)
    assert not target.exists()


def test_a_server_without_ranges_sends_the_whole_file(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT, ranges=False, cut_after=100, cuts=2)
    get(remote(server), target)
    assert target.read_bytes() == CONTENT
    assert files(target.parent) == ["model.bin"]


def test_a_whole_file_of_another_length_is_refused(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT[:-5], ranges=False)
    with pytest.raises(NetworkError, match=r"wrong length.*got 299995, expected 300000"):
        get(remote(server), target)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_wrong_checksum_leaves_nothing_behind(server: FakeServer, target: Path, ranges: bool) -> None:
    server.put("/model.bin", CONTENT[:-1] + b"?", ranges=ranges)
    with pytest.raises(BadFileError, match=r"the checksum is wrong.*got [0-9a-f]{64}, expected [0-9a-f]{64}; try"):
        get(remote(server), target)
    assert files(target.parent) == []


def test_an_interrupted_download_goes_on_where_it_was(server: FakeServer, target: Path) -> None:
    page = server.put("/model.bin", CONTENT, cut_after=30_000)
    page.faults.extend([Page(CONTENT, cut_after=30_000)] * 4 + [Page(b"", 404)] * 4)
    with pytest.raises(NotFoundError):
        get(remote(server), target)
    assert files(target.parent) == ["model.bin.part", "model.bin.part.json"]
    page.cut_after = None
    page.faults.clear()
    server.asked.clear()
    shown = get(remote(server), target)
    assert target.read_bytes() == CONTENT
    assert shown[0][0] >= 30_000
    assert any(not headers["range"].endswith(f"={i * SEGMENT}-") for i, (_, headers) in enumerate(server.asked))
    assert files(target.parent) == ["model.bin"]


def test_what_was_kept_and_is_wrong_is_fetched_again(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT)
    part = target.with_name("model.bin.part")
    part.write_bytes(bytes(len(CONTENT)))
    part.with_name("model.bin.part.json").write_text('{"size": 300000, "done": [50000, 50000, 0, 0, 0, 7]}')
    get(remote(server), target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    "note", ["", "{}", "[]", '{"size": 300000, "done": [1, 2]}', '{"size": 300000, "done": [-1,0,0,0,0,99999]}']
)
def test_a_damaged_note_means_to_begin_anew(server: FakeServer, target: Path, note: str) -> None:
    server.put("/model.bin", CONTENT)
    target.with_name("model.bin.part").write_bytes(bytes(len(CONTENT)))
    target.with_name("model.bin.part.json").write_text(note)
    get(remote(server), target)
    assert target.read_bytes() == CONTENT


def test_probing_finds_size_and_etag(server: FakeServer) -> None:
    server.put("/model.bin", CONTENT)
    with Client() as client:
        found = probe(client, remote(server, size=None))
    assert (found.size, found.etag) == (len(CONTENT), '"one"')
    server.put("/model.bin", CONTENT, ranges=False)
    with Client() as client:
        assert probe(client, remote(server, size=None)).size is None


def test_a_file_that_changed_since_it_was_probed_is_refused(server: FakeServer, target: Path) -> None:
    server.put("/model.bin", CONTENT, etag='"two"')
    with pytest.raises(NetworkError, match="another one than before"):
        get(remote(server, etag='"one"'), target)


def test_a_full_disk_is_told_as_such_and_keeps_what_came(
    server: FakeServer, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: partial.PartialFile, number: int, n_bytes: int) -> None:
        raise OSError(28, "No space left on device")

    server.put("/model.bin", CONTENT)
    monkeypatch.setattr(partial.PartialFile, "add", full)
    with pytest.raises(OSError, match="No space left"):
        get(remote(server), target)
    assert "model.bin.part" in files(target.parent)


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a\\b", "c:x", "", ".", "a/../../b", "x" * 501])
def test_files_outside_the_models_folder_are_refused(name: str) -> None:
    with pytest.raises(NetworkError, match="outside the model's folder"):
        RemoteFile(name, "http://127.0.0.1/x")
