import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelc.bundle.boot import unused

pytest.importorskip("fcntl", reason="folders are held by locks of POSIX systems")
MONTHS_S = 3 * unused.UNUSED_S


def folder(base: Path, letter: str, age_s: float = 0.0) -> Path:
    made = base / (letter * unused.ID_CHARS)
    made.mkdir()
    (made / "library.so").write_bytes(b"x")
    modules = made / unused.MODULES
    modules.write_bytes(b"x")
    then = time.time() - age_s
    os.utime(modules, (then, then))
    return made


def test_what_nobody_used_for_long_is_removed_and_nothing_else(tmp_path: Path) -> None:
    new, old = folder(tmp_path, "a"), folder(tmp_path, "b", MONTHS_S)
    foreign = [folder(tmp_path, "x", MONTHS_S), tmp_path / "notes"]
    foreign[1].write_bytes(b"")
    unused.remove(str(tmp_path))
    assert not old.exists()
    assert sorted(tmp_path.iterdir()) == sorted([new, *foreign])


def test_what_a_process_uses_stays_until_it_ends(tmp_path: Path) -> None:
    old = folder(tmp_path, "a", MONTHS_S)
    code = f"from modelc.bundle.boot import unused; print(unused.hold({str(old)!r}), flush=True); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "True\n"
        then = time.time() - MONTHS_S
        os.utime(old / unused.MODULES, (then, then))
        unused.remove(str(tmp_path))
        assert (old / "library.so").exists()
        user.communicate("\n")
    unused.remove(str(tmp_path))
    assert not old.exists()


def test_a_start_makes_a_folder_new_again(tmp_path: Path) -> None:
    old = folder(tmp_path, "a", MONTHS_S)
    assert unused.hold(str(old))
    assert time.time() - (old / unused.MODULES).stat().st_mtime < unused.SCRATCH_S


def test_what_is_gone_cannot_be_held(tmp_path: Path) -> None:
    assert not unused.hold(str(tmp_path / "none"))


def test_a_folder_that_was_replaced_while_the_lock_was_awaited_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = folder(tmp_path, "a")
    lock = unused._locked

    def replaced_meanwhile(path: str, exclusive: bool) -> int:
        descriptor = lock(path, exclusive)
        used.rename(tmp_path / "aside")
        folder(tmp_path, "a")
        return descriptor

    monkeypatch.setattr(unused, "_locked", replaced_meanwhile)
    assert not unused.hold(str(used))


def test_scratch_folders_of_killed_processes_are_removed_after_a_day(tmp_path: Path) -> None:
    for name, age_s in (("new", 60.0), ("old", 2.0 * unused.SCRATCH_S)):
        scratch = tmp_path / f"{unused.SCRATCH}{name}"
        scratch.mkdir()
        then = time.time() - age_s
        os.utime(scratch, (then, then))
    unused.remove(str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == [f"{unused.SCRATCH}new"]


def test_rests_without_an_archive_are_removed_when_they_are_old(tmp_path: Path) -> None:
    for letter, age_s in (("a", 0.0), ("b", MONTHS_S)):
        rest = folder(tmp_path, letter)
        (rest / unused.MODULES).unlink()
        then = time.time() - age_s
        os.utime(rest, (then, then))
    unused.remove(str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["a" * unused.ID_CHARS]
