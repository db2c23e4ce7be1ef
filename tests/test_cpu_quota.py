"""The CPU quota of a control group."""

import os
from pathlib import Path

import pytest

from modelc.cpu_quota import cpu_quota


@pytest.fixture
def many_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.usefixtures("many_cpus")
@pytest.mark.parametrize(
    ("text", "cpus"),
    [("200000 100000\n", 2), ("250000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", 64), ("gibberish\n", 64)],
)
def test_version_2_root(tmp_path: Path, text: str, cpus: int) -> None:
    write(tmp_path / "cpu.max", text)
    assert cpu_quota(tmp_path, tmp_path / "missing") == cpus


@pytest.mark.usefixtures("many_cpus")
def test_version_2_smallest_on_the_way_to_the_root(tmp_path: Path) -> None:
    write(tmp_path / "membership", "0::/user/service\n")
    write(tmp_path / "user" / "cpu.max", "300000 100000\n")
    write(tmp_path / "user" / "service" / "cpu.max", "max 100000\n")
    assert cpu_quota(tmp_path, tmp_path / "membership") == 3


@pytest.mark.usefixtures("many_cpus")
def test_version_1(tmp_path: Path) -> None:
    write(tmp_path / "membership", "4:memory:/a\n3:cpu,cpuacct:/docker/b\n")
    write(tmp_path / "cpu" / "cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "cpu" / "cpu.cfs_period_us", "100000\n")
    write(tmp_path / "cpu" / "docker" / "b" / "cpu.cfs_quota_us", "400000\n")
    write(tmp_path / "cpu" / "docker" / "b" / "cpu.cfs_period_us", "100000\n")
    assert cpu_quota(tmp_path, tmp_path / "membership") == 4


@pytest.mark.usefixtures("many_cpus")
def test_no_control_groups(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "none", tmp_path / "missing") == 64
