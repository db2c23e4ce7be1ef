import mmap
from pathlib import Path

import numpy as np
import pytest

from modelc.formats.mapped_pages import release_pages
from modelc.formats.mapping import map_file

PAGES = 64


def resident_pages(address: int) -> int:
    """Pages of the mapping that begins at `address` and are in this process's memory."""
    found = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            found = begin <= address < end
        elif found and line.startswith("Rss:"):
            return int(line.split()[1]) * 1024 // mmap.PAGESIZE
    raise AssertionError("no such mapping")


@pytest.fixture
def mapped(tmp_path: Path) -> np.ndarray:
    path = tmp_path / "file"
    path.write_bytes(np.arange(PAGES * mmap.PAGESIZE // 4, dtype=np.uint32).tobytes())
    return np.frombuffer(map_file(path), np.uint8)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_pages_are_given_back_and_come_again_from_the_file(mapped: np.ndarray) -> None:
    before = mapped.sum()
    assert resident_pages(mapped.ctypes.data) == PAGES
    release_pages(mapped[100 : 40 * mmap.PAGESIZE + 100])
    assert resident_pages(mapped.ctypes.data) <= PAGES - 39
    assert mapped.sum() == before


def test_parts_of_a_page_and_other_memory_are_left_alone(mapped: np.ndarray) -> None:
    release_pages(mapped[10:20])
    values = np.arange(256, dtype=np.uint8).repeat(256)
    release_pages(values)
    release_pages(np.frombuffer(values.tobytes(), np.uint8)[1:])
    assert values.sum() == 255 * 128 * 256
