import ctypes
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from modelc.bundle import linker
from modelc.bundle.elf import defined_symbols, undefined_symbols
from modelc.bundle.linker import link, linker_command
from modelc.bundle.target import TARGETS, Target, host_target
from modelc.errors import ModelcError, NotFoundError

CODE = """target triple = "{triple}"
declare i32 @{wanted}()
define i32 @answer() {{ ret i32 42 }}
define i32 @other() {{ %r = call i32 @{wanted}() ret i32 %r }}"""


def host() -> Target:
    target = host_target()
    assert target is not None
    return target


def objects(wanted: str, target: Target) -> dict[str, bytes]:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(reloc="pic", codemodel="default")
    return {"a.b": machine.emit_object(llvm.parse_assembly(CODE.format(triple=target.triple, wanted=wanted)))}


def test_a_library_is_linked_the_same_every_time_and_can_be_loaded(tmp_path: Path) -> None:
    libraries = {link(objects("sched_yield", host()), host(), "answer.so") for _ in range(2)}
    assert len(libraries) == 1
    (tmp_path / "answer.so").write_bytes(libraries.pop())
    assert ctypes.CDLL(str(tmp_path / "answer.so")).answer() == 42


def test_what_a_library_gives_and_needs_is_read() -> None:
    library = link(objects("usleep", host()), host(), "x.so")
    assert defined_symbols(library) == {"answer", "other"}
    assert undefined_symbols(library) == {"usleep"}


def test_a_library_that_needs_more_than_is_allowed_is_refused() -> None:
    with pytest.raises(ModelcError, match="numba_parallel_for"):
        link(objects("numba_parallel_for", host()), host(), "x.so")


def test_damaged_objects_are_one_line() -> None:
    with pytest.raises(ModelcError, match="the linker failed") as raised:
        link({"x": b"\x7fELF nothing"}, host(), "x.so")
    assert "\n" not in str(raised.value)


def test_the_system_linker_serves_where_zig_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(linker.shutil, "which", lambda name: f"/bin/{name}" if name == "gcc" else None)
    assert linker_command(host()) == ["/bin/gcc"]


def test_without_a_linker_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(linker.shutil, "which", lambda name: None)
    with pytest.raises(NotFoundError, match=r"no linker: .*pip install 'modelc\[compile\]'"):
        linker_command(host())
    other = next(target for target in TARGETS if not target.is_host)
    with pytest.raises(NotFoundError, match=f"no linker for {other.name}"):
        linker_command(other)
