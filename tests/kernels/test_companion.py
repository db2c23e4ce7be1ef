import subprocess
import time
from pathlib import Path

import pytest

from modelc.kernels import companion as module
from modelc.kernels.companion import LEAST, companion, main
from modelc.kernels.objects import ObjectCache

QUICK = ["bias.relu", "spin", "worker"]  # to compile


def test_it_compiles_from_the_last_name_to_the_first_that_is_there(tmp_path: Path) -> None:
    objects = ObjectCache(tmp_path)
    objects.addresses(QUICK[1:2])
    main(str(tmp_path), *QUICK)
    assert [objects.has(name) for name in QUICK] == [False, True, True]


def test_where_nothing_can_be_kept_it_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ObjectCache, "addresses", lambda self, names: asked.extend(names))
    main(str(tmp_path), *QUICK)
    assert asked == ["worker"]


def test_while_the_block_runs_another_process_fills_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cpus", lambda: 2)
    objects = ObjectCache(tmp_path)
    with companion([*QUICK[:2]] * LEAST, tmp_path) as is_helped:
        assert is_helped
        end = time.monotonic() + 60
        while not objects.has("spin") and time.monotonic() < end:
            time.sleep(0.05)
    assert objects.has("spin")


def test_few_functions_and_single_cores_get_no_second_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cpus", lambda: 2)
    with companion(["spin"] * (LEAST - 1), tmp_path) as is_helped:
        assert not is_helped
    monkeypatch.setattr(module, "usable_cpus", lambda: 1)
    with companion(["spin"] * LEAST, tmp_path) as is_helped:
        assert not is_helped


def test_without_a_second_process_the_first_does_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*args: object, **options: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(module, "usable_cpus", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", none_left)
    with companion(["spin"] * LEAST, tmp_path) as is_helped:
        assert not is_helped
