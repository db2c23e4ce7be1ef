import os

import pytest

from modelc.runtime import threads
from modelc.runtime.threads import default_threads


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """8 CPUs, two on each core (0 and 4, 1 and 5, …), no quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(threads, "_siblings", lambda cpu: f"{cpu % 4},{cpu % 4 + 4}")
    monkeypatch.setattr(threads, "cpu_quota", lambda: 8)
    return monkeypatch


@pytest.mark.usefixtures("machine")
def test_hyper_threads_are_not_cores() -> None:
    assert default_threads() == 4


def test_only_cpus_that_the_process_may_use_count(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(os, "sched_getaffinity", lambda pid: {1, 5, 6})
    assert default_threads() == 2


@pytest.mark.parametrize(("quota", "expected"), [(1, 1), (3, 3), (64, 4)])
def test_the_quota_is_a_limit(machine: pytest.MonkeyPatch, quota: int, expected: int) -> None:
    machine.setattr(threads, "cpu_quota", lambda: quota)
    assert default_threads() == expected


def test_without_affinity_masks_all_cpus_count(machine: pytest.MonkeyPatch) -> None:
    machine.delattr(os, "sched_getaffinity")
    machine.setattr(os, "cpu_count", lambda: 2)
    assert default_threads() == 2


def test_a_cpu_of_unknown_topology_is_a_core_of_its_own() -> None:
    assert threads._siblings(123456) == "123456"


def test_this_machine_has_a_number() -> None:
    assert 1 <= default_threads() <= (os.cpu_count() or 1)
