"""Downloads of a gigabyte: as fast as the server, and whole after any number of kills."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 1_000_000_000
CHILD = """
import sys, time
from pathlib import Path
from modelc.hub.client import Client
from modelc.hub.remote import RemoteFile
from modelc.hub.transfer import fetch
url, size, digest, target = sys.argv[1:]
began_s = time.monotonic()
with Client() as client:
    fetch(client, RemoteFile("big", url, int(size), digest), Path(target), lambda done, total: None)
print(time.monotonic() - began_s)
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs sendfile")]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A file of random bytes and its checksum."""
    path = tmp_path_factory.mktemp("big") / "big"
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(SIZE // 1_000_000):
            piece = os.urandom(1_000_000)
            file.write(piece)
            digest.update(piece)
    yield path, f"sha256:{digest.hexdigest()}"
    path.unlink()


@contextmanager
def served(path: Path, bytes_per_s: int = 0) -> Iterator[str]:
    command = [sys.executable, "-m", "conformance.range_server", str(path), str(bytes_per_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/big"
        finally:
            server.kill()


def start(url: str, digest: str, target: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, url, str(SIZE), digest, str(target)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def seconds(url: str, digest: str, target: Path) -> float:
    with start(url, digest, target) as process:
        told, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert target.stat().st_size == SIZE
    target.unlink()
    return float(told)


def noted(target: Path) -> int:
    """Bytes that the next start need not fetch."""
    note = target.with_name(f"{target.name}.part.json")
    return sum(json.loads(note.read_text())["done"]) if note.exists() else 0


def test_a_server_of_100_mb_a_second_is_used_to_95_percent(big: tuple[Path, str], tmp_path: Path) -> None:
    path, digest = big
    with served(path, 100_000_000) as url:
        rate = SIZE / min(seconds(url, digest, tmp_path / "big") for _ in range(2))
    print(f"{rate / 1e6:.1f} MB/s of 100")
    assert rate > 95e6


def test_a_fast_server_is_used_with_200_mb_a_second_checksum_included(big: tuple[Path, str], tmp_path: Path) -> None:
    path, digest = big
    with served(path) as url:
        rate = SIZE / min(seconds(url, digest, tmp_path / "big") for _ in range(5))
    print(f"{rate / 1e6:.1f} MB/s")
    assert rate > 200e6


def test_a_download_that_is_killed_ten_times_ends_with_the_right_checksum(
    big: tuple[Path, str], tmp_path: Path
) -> None:
    path, digest = big
    draw = random.Random(1)
    target = tmp_path / "big"
    kept = [0]
    with served(path, 100_000_000) as url:
        for _ in range(10):
            with start(url, digest, target) as process:
                while not target.with_name("big.part").exists():
                    time.sleep(0.01)
                time.sleep(draw.uniform(0.0, 1.5))
                assert process.poll() is None, "ended before it was killed"
                process.kill()
            kept.append(noted(target))
        with start(url, digest, target) as process:
            assert process.wait(120) == 0
    print(f"kept after each kill: {[f'{n / 1e6:.0f} MB' for n in kept[1:]]}")
    assert kept == sorted(kept)
    assert kept[-1] > 0.2 * SIZE
    with target.open("rb") as file:
        assert f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == digest
    assert [entry.name for entry in tmp_path.iterdir()] == ["big"]
