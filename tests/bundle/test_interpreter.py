import sys
import sysconfig
from pathlib import Path

import pytest

from modelc.bundle import interpreter as interpreters
from modelc.bundle.boot.embedded import HOME
from modelc.bundle.compiling import compile_model
from modelc.bundle.interpreter import Interpreter, interpreter
from modelc.bundle.modules import HERE
from modelc.bundle.target import TARGETS, host_target
from modelc.errors import NotFoundError, UnsupportedError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="executables are Linux's")


def configured(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: changes.get(name, real(name)))


def test_what_it_takes_is_whole_without_what_nothing_asks_for(python: Interpreter) -> None:
    assert python.libraries[-1].startswith(f"{HOME}libpython")
    assert f"{HOME}encodings/utf_8.pyc" in python.files
    assert not [name for name in python.files if "crypto" in name or "sqlite" in name]
    assert all(python.files[name][:4] == b"\x7fELF" for name in python.libraries)
    assert 17 <= python.glibc_minor < 100
    assert sum(map(len, python.files.values())) < 24_000_000


def test_a_library_follows_those_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {
        b"python": ["libc.so.6", "libb.so"],
        b"b": ["liba.so", "libm.so.6"],
        b"a": [],
        b"x": ["libpython3.11.so.1.0"],
    }
    monkeypatch.setattr(interpreters, "needed_libraries", needs.__getitem__)
    monkeypatch.setattr(interpreters, "_library", lambda name: name[3:4].encode())
    assert interpreters._needed_of([b"x", b"python", b"b"]) == {"liba.so": b"a", "libb.so": b"b"}


def test_a_library_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(NotFoundError, match=r"libnothing\.so\.1"):
        interpreters._library("libnothing.so.1")


def test_a_python_without_a_shared_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch, Py_ENABLE_SHARED=0)
    with pytest.raises(UnsupportedError, match=r"expected CPython with a shared library; .*without --format elf"):
        interpreter()


def test_a_shared_library_of_another_version_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = str(sysconfig.get_config_var("INSTSONAME"))
    (tmp_path / name).write_bytes(b"\x7fELF of 3.0.1")
    configured(monkeypatch, LIBDIR=str(tmp_path), MULTIARCH="")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    with pytest.raises(NotFoundError, match="shared library is not installed"):
        interpreter()


def test_other_targets_and_versions_are_one_line(tmp_path: Path) -> None:
    here = host_target()
    assert here is not None
    other = next(target for target in TARGETS if not target.is_host)
    for target, pythons in ((other, [HERE]), (here, ["3.99"]), (here, [HERE, "3.99"])):
        with pytest.raises(UnsupportedError, match=r"compile .*without --format elf"):
            compile_model(tmp_path / "x.modelc", tmp_path / "x", target, pythons, is_executable=True)
    assert list(tmp_path.iterdir()) == []
