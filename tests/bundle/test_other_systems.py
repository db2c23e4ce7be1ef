"""Libraries for Windows and macOS are linked here, and what they ask of their system is known."""

import ctypes
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from modelc.bundle import compiling
from modelc.bundle.boot import libraries, start
from modelc.bundle.boot.libraries import load_support
from modelc.bundle.linker import KERNEL_SYMBOLS, link
from modelc.bundle.macho import is_signed
from modelc.bundle.macho import undefined_symbols as macho_symbols
from modelc.bundle.pe import imported_symbols
from modelc.bundle.target import TARGETS, Target
from modelc.cli import main
from modelc.errors import ModelcError
from tests.bundle.test_linker import objects

WINDOWS, MACOS = (next(target for target in TARGETS if target.system == system) for system in ("win32", "darwin"))

needs_zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no linker for other systems")


@needs_zig
@pytest.mark.parametrize("target", [WINDOWS, MACOS], ids=lambda target: target.name)
def test_libraries_are_the_same_every_time(target: Target) -> None:
    first, second = (link(objects("sched_yield", target), target, "x") for _ in range(2))
    assert first == second


@needs_zig
def test_windows_libraries_bring_what_windows_lacks() -> None:
    needed = imported_symbols(link(objects("sched_yield", WINDOWS), WINDOWS, "x"))
    assert needed == {"KERNEL32.dll:Sleep", "KERNEL32.dll:SwitchToThread"}
    needed = imported_symbols(link(objects("memset", WINDOWS), WINDOWS, "x"))
    assert "NTDLL.dll:memset" in needed <= KERNEL_SYMBOLS["win32"]


@needs_zig
def test_macos_libraries_are_signed_and_ask_for_the_c_library() -> None:
    library = link(objects("sched_yield", MACOS), MACOS, "x")
    assert is_signed(library)
    assert {"sched_yield"} <= macho_symbols(library) <= KERNEL_SYMBOLS["darwin"]


@needs_zig
@pytest.mark.parametrize("target", [WINDOWS, MACOS], ids=lambda target: target.name)
def test_libraries_that_ask_for_more_are_refused(target: Target) -> None:
    with pytest.raises(ModelcError, match=r"fopen|the linker failed"):
        link(objects("fopen", target), target, "x")


def test_macos_calls_the_machine_by_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start.os, "uname", lambda: SimpleNamespace(machine="arm64"))
    assert start._machine() == MACOS.machine


def test_windows_gets_the_libraries_of_packages_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode: loaded.append(path))
    files = {"numpy.libs/blas.dll": "/c/blas.dll", "numpy/core.pyd": "/c/core.pyd"}
    load_support(files, in_memory=False)
    assert loaded == []
    monkeypatch.setattr(libraries.sys, "platform", "win32")
    load_support(files, in_memory=False)
    assert loaded == ["/c/blas.dll"]


def test_a_target_where_nothing_has_run_is_called_untested(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def copied(source: Path, output: Path, *rest: object, **named: object) -> str:
        output.write_bytes(source.read_bytes())
        return "Python 3.11"

    monkeypatch.setattr(compiling, "compile_model", copied)
    for target in TARGETS:
        assert main(["compile", str(weights), "-o", str(tmp_path / "x.pyz"), "--target", target.name]) == 0
        assert ("untested" in capsys.readouterr().out) == (not target.is_tried)
