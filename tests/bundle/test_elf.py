import ctypes
import os
import re
import struct
import sys
from pathlib import Path

import pytest

from modelc.bundle.elf import glibc_minor, needed_libraries, soname, undefined_symbols, without_sections
from modelc.bundle.linker import link
from modelc.bundle.loaded import loaded_library
from tests.bundle.test_linker import host, objects

linux = pytest.mark.skipif(sys.platform != "linux", reason="about this process's own libraries")


def libm() -> bytes:
    content = loaded_library("libm.so.6")
    assert content is not None
    return content


@linux
def test_the_libraries_that_one_needs_and_its_own_name_are_read() -> None:
    assert soname(libm()) == "libm.so.6"
    assert "libc.so.6" in needed_libraries(libm())
    library = link(objects("usleep", host()), host(), "x.so")
    assert (soname(library), needed_libraries(library), glibc_minor(library)) == ("x.so", [], 0)


@linux
def test_the_version_of_glibc_that_one_needs_is_the_highest_that_it_asks_for() -> None:
    here = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])  # type: ignore[union-attr]
    assert 2 <= glibc_minor(libm()) <= here
    names = re.compile(rb"GLIBC_(2\.[\d.]+|ABI_DT_RELR)\0")
    changed = names.sub(lambda name: b"GLIBC_2.9".ljust(len(name[0]), b"\0"), libm())
    assert glibc_minor(changed) == 9
    assert glibc_minor(changed.replace(b"GLIBC_2.9\0", b"GLIBC_2.7\0")) == 7


@linux
def test_without_its_sections_a_library_is_shorter_and_the_same_to_the_loader(tmp_path: Path) -> None:
    library = link(objects("sched_yield", host()), host(), "answer.so", debug=True)
    short = without_sections(library)
    assert len(short) < len(library)
    assert soname(short) == "answer.so"
    assert undefined_symbols(library) == {"sched_yield"}
    assert undefined_symbols(short) == set(), "there is nothing that lists them any more"
    (tmp_path / "answer.so").write_bytes(short)
    assert ctypes.CDLL(str(tmp_path / "answer.so")).answer() == 42
    assert without_sections(short) == short
    assert glibc_minor(without_sections(libm())) == glibc_minor(libm())


def test_a_library_whose_segments_are_listed_at_its_end_stays_as_it_is() -> None:
    header = bytearray(64)
    struct.pack_into("<Q", header, 32, 64)  # where the list is: behind everything that is loaded
    struct.pack_into("<HH", header, 54, 56, 1)
    library = bytes(header) + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 4096)
    assert without_sections(library) == library
