"""The memory limit of a control group."""

import os
from pathlib import Path

import pytest

from modelc.memory_limit import UNKNOWN_BYTES, memory_limit

GIB = 1 << 30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 GiB of memory."""
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4 << 20}.get, raising=False)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("memory.max", "max\n", 16 * GIB),
        ("memory.max", f"{2 * GIB}\n", 2 * GIB),
        ("memory.max", f"{64 * GIB}\n", 16 * GIB),
        ("memory/memory.limit_in_bytes", f"{3 * GIB}\n", 3 * GIB),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", 16 * GIB),
        ("memory.max", "gibberish\n", 16 * GIB),
    ],
)
def test_the_smaller_of_machine_and_root_group_counts(tmp_path: Path, file: str, text: str, expected: int) -> None:
    write(tmp_path / file, text)
    assert memory_limit(tmp_path, tmp_path / "missing") == expected


def test_version_2_smallest_on_the_way_to_the_root(tmp_path: Path) -> None:
    write(tmp_path / "membership", "0::/user/service\n")
    write(tmp_path / "user" / "memory.max", f"{4 * GIB}\n")
    write(tmp_path / "user" / "service" / "memory.max", "max\n")
    assert memory_limit(tmp_path, tmp_path / "membership") == 4 * GIB
    write(tmp_path / "user" / "service" / "memory.max", f"{1 * GIB}\n")
    assert memory_limit(tmp_path, tmp_path / "membership") == 1 * GIB


def test_version_1(tmp_path: Path) -> None:
    write(tmp_path / "membership", "3:cpu,cpuacct:/a\n4:memory:/docker/b\n")
    write(tmp_path / "memory" / "memory.limit_in_bytes", f"{9 * GIB}\n")
    write(tmp_path / "memory" / "docker" / "b" / "memory.limit_in_bytes", f"{5 * GIB}\n")
    assert memory_limit(tmp_path, tmp_path / "membership") == 5 * GIB


def test_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf")
    assert memory_limit(tmp_path, tmp_path / "missing") == UNKNOWN_BYTES
