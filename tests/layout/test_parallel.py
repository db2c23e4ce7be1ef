"""The door to parallel loops: cache and concurrency."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from modelc.kernels import objects
from modelc.layout import loop_cache, parallel
from modelc.layout.loop_cache import LoopCache, Step
from modelc.layout.parallel import parallel_loop
from modelc.settings import cache_folder


def run(n: int) -> list[int]:
    """Adds `n` to 1, 2, 3 by a loop whose name does not tell `n`."""

    def make_step() -> Step:
        from modelc.layout.words import Buffer, load_u8, store_u8

        def step(
            source: Buffer, source_bytes: int, target: Buffer, target_bytes: int, n_blocks: int, start: int, stop: int
        ) -> None:
            for i in range(start, stop):
                store_u8(target, i, load_u8(source, i) + n)

        return step

    source, target = np.array([1, 2, 3], np.uint8), np.zeros(3, np.uint8)
    parallel_loop("numbers.add", make_step)(source, 1, target, 1, 1, 3)
    return target.tolist()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each call, as in a new process."""
    caches: list[LoopCache] = []  # they own the code

    def fresh() -> LoopCache:
        caches.append(LoopCache(tmp_path / "loops"))
        return caches[-1]

    monkeypatch.setattr(parallel, "_cache", fresh)
    return tmp_path / "loops"


def test_a_loop_is_compiled_once_and_then_loaded_by_its_name(folder: Path) -> None:
    assert run(1) == [2, 3, 4]
    assert run(2) == [2, 3, 4]  # the loop kept under that name, not a new one


@pytest.mark.parametrize("damage", [b"", b"x" * 4000])
def test_damaged_entries_are_replaced(folder: Path, damage: bytes) -> None:
    run(1)
    (damaged,) = folder.glob("numbers.add-*.o")
    damaged.write_bytes(damage)
    assert run(2) == [3, 4, 5]
    assert run(3) == [3, 4, 5]


def test_a_folder_that_cannot_be_made_is_done_without(folder: Path) -> None:
    folder.write_bytes(b"a file stands there")
    assert run(1) == [2, 3, 4]


def test_entries_are_in_the_users_cache_and_named_by_what_decides_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LoopCache()
    assert cache.folder == cache_folder() / "kernels" / objects.cache_key()
    here = cache._file("q4_0.quantize")
    monkeypatch.setattr(loop_cache, "sources_key", lambda: "other")
    assert cache._file("q4_0.quantize") != here
    monkeypatch.setenv("NUMBA_CPU_NAME", "another")
    assert LoopCache().folder != cache.folder


@pytest.mark.parametrize("n_units", [0, 1, 2, 5, 100])
def test_every_unit_is_done_once_whatever_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, n_units: int) -> None:
    done: list[int] = []
    monkeypatch.setattr(parallel, "MIN_THREAD_BYTES", 1)
    monkeypatch.setattr(parallel, "usable_cpus", lambda: 7)
    monkeypatch.setattr(parallel, "python_function", lambda *_: lambda *a: done.extend(range(a[5], a[6])))
    monkeypatch.setattr(LoopCache, "address", lambda *_: 0)
    parallel_loop("units", lambda: lambda *_: None)(np.zeros(9, np.uint8), 1, np.zeros(9, np.uint8), 1, 1, n_units)
    assert sorted(done) == list(range(n_units))


CONCURRENT = """
import sys
import threading
import numpy as np
from modelc.dtypes import DTYPES
from modelc.layout import parallel, to_lanes
parallel.MIN_THREAD_BYTES = 1
plain = np.arange(18 * 256, dtype=np.uint8)
expected = to_lanes(DTYPES["q4_0"], plain, 256, 32).tobytes()
def convert():
    for _ in range(200):
        assert to_lanes(DTYPES["q4_0"], plain, 256, 32).tobytes() == expected
threads = [threading.Thread(target=convert) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("numba" in sys.modules)
"""


def test_threads_may_convert_at_once_and_cached_loops_need_no_numba() -> None:
    for _ in range(2):  # the first may have to compile
        done = subprocess.run([sys.executable, "-c", CONCURRENT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "False", "")
