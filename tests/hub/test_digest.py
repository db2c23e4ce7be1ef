import hashlib
import threading
from pathlib import Path

import pytest

from modelc.hub import digest
from modelc.hub.digest import Follower
from tests.hub.fake_server import git_blob


def test_a_file_that_grows_is_read_behind_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "READ_BYTES", 100)
    content = bytes(range(256)) * 5
    path = tmp_path / "a"
    path.write_bytes(bytes(len(content)))
    available = 0
    follower = Follower(path, "sha256:", len(content), lambda: available)
    with path.open("r+b", buffering=0) as file:
        for i in range(0, len(content), 50):
            file.write(content[i : i + 50])
            available = i + 50
    available = len(content)
    assert follower.result() == hashlib.sha256(content).hexdigest()


def test_gits_checksum_knows_the_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello\n")
    assert Follower(tmp_path / "a", "git-sha1:", 6, lambda: 6).result() == git_blob(b"hello\n")
    assert git_blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_follower_that_is_stopped_ends(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    follower = Follower(tmp_path / "a", "sha256:", 10, lambda: 0)
    follower.stop()
    assert "modelc-checksum" not in {thread.name for thread in threading.enumerate()}


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Follower(tmp_path / "missing", "sha256:", 10, lambda: 10).result()
