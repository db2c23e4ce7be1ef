"""How a compiled file gets from the shell to Python, and ends when it is told to before it serves."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelc.bundle.boot import unused
from modelc.bundle.boot.archive import WEIGHTS_AT
from modelc.bundle.modules import HERE
from modelc.version import version_line

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no shell")
PYTHON = Path(sys.executable)


def run(*command: str | Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("size", [400, 1500, WEIGHTS_AT, WEIGHTS_AT + 5000, -1])
@pytest.mark.parametrize("command", [[], [PYTHON]])
def test_a_file_without_its_end_is_one_line(
    built: Path, environment: dict[str, str], tmp_path: Path, size: int, command: list[Path]
) -> None:
    part = tmp_path / "part.pyz"
    part.write_bytes(built.read_bytes()[:size])
    part.chmod(0o755)
    result = run(*command, part, "--info", env=environment)
    assert result.returncode != 0
    assert len(result.stderr.splitlines()) == 1, result.stderr
    words = result.stderr.replace("-", " ")
    assert "damaged or not complete" in words or (size == 400 and "yntax error" in words)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "busybox"])
def test_every_shell_starts_it(built: Path, environment: dict[str, str], shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip("this shell is not here")
    command = [found, "sh"] if shell == "busybox" else [found]
    assert run(*command, built, "--version", env=environment).stdout.strip() == version_line()


@pytest.mark.parametrize("name", ["two words.pyz", "ü*?[x]$(false)'\".pyz", "-x.pyz", "new\nline.pyz"])
def test_any_name_and_place_will_do_and_a_link_too(
    built: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    os.link(built, folder / name)
    (tmp_path / "link").symlink_to(folder / name)
    monkeypatch.chdir(folder)
    for command in ([f"./{name}"], [folder / name], [tmp_path / "link"], ["sh", "--", name]):
        assert run(*command, "--version", env=environment).stdout.strip() == version_line()


def test_settings_of_ls_do_not_make_it_look_damaged(built: Path, environment: dict[str, str]) -> None:
    for name in ("BLOCK_SIZE", "BLOCKSIZE"):
        env = environment | {name: "1024", "IFS": "0", "LC_ALL": "C"}
        assert run(built, "--version", env=env).stdout.strip() == version_line()


def only(folder: Path, **programs: str | Path) -> dict[str, str]:
    """An environment whose path has these programs and no others."""
    folder.mkdir()
    for name, place in programs.items():
        (folder / name.replace("_", ".")).symlink_to(place)
    return {"PATH": str(folder), "MODELC_CACHE": str(folder / "cache")}


def test_without_python_it_says_what_to_install(built: Path, tmp_path: Path) -> None:
    result = run(built, env=only(tmp_path / "bin"))
    assert result.returncode == 1
    assert result.stderr == f"modelc: there is no python3: install python{HERE}\n"


def test_python_is_found_by_its_version_before_another_one(built: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("#!/bin/sh\necho wrong\n")
    wrong.chmod(0o755)
    programs = {f"python{HERE}".replace(".", "_"): PYTHON, "python3": wrong}
    assert run(built, "--version", env=only(tmp_path / "bin", **programs)).stdout.strip() == version_line()


def test_a_version_manager_is_asked_for_the_chosen_python_only(built: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("#!/bin/sh\necho 'not chosen'\nexit 127\n")
    (tmp_path / "wrong").chmod(0o755)
    programs = {f"python{HERE}".replace(".", "_"): tmp_path / "wrong", "python3": PYTHON}
    assert run(built, "--version", env=only(tmp_path / "shims", **programs)).stdout.strip() == version_line()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_who_is_ended_while_unpacking_leaves_nothing(
    built: Path, environment: dict[str, str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    env = environment | {"MODELC_CACHE": str(tmp_path)}
    with subprocess.Popen([built], env=env, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob(f"compiled/{unused.SCRATCH}*")):
            time.sleep(0.001)
        process.send_signal(number)
        said = process.communicate()[1]
    assert process.returncode == code
    assert said == ("" if number == signal.SIGTERM else "modelc: interrupted\n")
    assert list((tmp_path / "compiled").iterdir()) == []


def test_an_unused_folder_of_another_file_goes_when_a_new_one_comes(
    built: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    old = tmp_path / "compiled" / ("0" * unused.ID_CHARS)
    old.mkdir(parents=True, mode=0o700)
    (old / unused.MODULES).write_bytes(b"")
    then = time.time() - 2 * unused.UNUSED_S
    os.utime(old / unused.MODULES, (then, then))
    (tmp_path / "compiled").chmod(0o700)
    assert run(built, "--info", env=environment | {"MODELC_CACHE": str(tmp_path)}).returncode == 0
    assert not old.exists()
    assert len(list((tmp_path / "compiled").iterdir())) == 1
