"""The door to parallel loops: cache and concurrency."""

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from modelc.layout import loop_cache
from modelc.layout.parallel import parallel_loop
from modelc.layout.words import Buffer, load_u8, store_u8
from modelc.settings import cache_folder


def run(n: int) -> list[int]:
    """Adds `n` to 1, 2, 3 by a loop whose name does not tell `n`."""

    def step(
        source: Buffer, source_bytes: int, target: Buffer, target_bytes: int, n_blocks: int, start: int, stop: int
    ) -> None:
        for i in range(start, stop):
            store_u8(target, i, load_u8(source, i) + n)

    source, target = np.array([1, 2, 3], np.uint8), np.zeros(3, np.uint8)
    parallel_loop("numbers.add", step)(source, 1, target, 1, 1, 3)
    return target.tolist()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loop_cache, "loop_cache_folder", lambda: tmp_path / "loops")
    return tmp_path / "loops"


def test_a_loop_is_compiled_once_and_then_loaded_by_its_name(folder: Path) -> None:
    assert run(1) == [2, 3, 4]
    assert run(2) == [2, 3, 4]  # the loop kept under that name, not a new one


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_entries_are_replaced(folder: Path, suffix: str) -> None:
    run(1)
    (damaged,) = folder.glob(f"*numbers.add*{suffix}")
    damaged.write_bytes(b"")
    assert run(2) == [3, 4, 5]
    assert run(3) == [3, 4, 5]


def test_a_folder_that_cannot_be_made_is_done_without(folder: Path) -> None:
    folder.write_bytes(b"a file stands there")
    assert run(1) == [2, 3, 4]


def test_the_folder_is_in_the_users_cache_and_named_by_what_decides_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> str:
        folder: Path = loop_cache.loop_cache_folder.__wrapped__()
        assert folder.parent == cache_folder()
        return folder.name.split("-")[-1]

    here = name()
    assert name() == here
    monkeypatch.setattr(numba.config, "CPU_NAME", "another")
    other_cpu = name()
    monkeypatch.setattr(numba, "__version__", "0.0")
    assert len({here, other_cpu, name()}) == 3


CONCURRENT = """
import threading
import numpy as np
from modelc.dtypes import DTYPES
from modelc.layout import parallel, to_lanes
parallel.MIN_THREAD_BYTES = 1
def convert():
    for _ in range(200):
        to_lanes(DTYPES["q4_0"], np.zeros(18 * 256, np.uint8), 256, 32)
threads = [threading.Thread(target=convert) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(numba.threading_layer())
"""


def test_threads_may_convert_at_once_under_the_layer_that_forbids_it() -> None:
    script = "import numba; numba.config.THREADING_LAYER = 'workqueue'\n" + CONCURRENT
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "workqueue"), done.stderr
