"""An executable is started as its users start it; here it carries Python, and a short program instead of a model."""

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from modelc.bundle import linker
from modelc.bundle.boot.bytecode import add
from modelc.bundle.compiled_file import MAIN, starters
from modelc.bundle.executable import executable
from modelc.bundle.interpreter import Interpreter, interpreter
from modelc.bundle.launcher import launcher
from modelc.bundle.record import RECORD_AT, Span, record
from modelc.bundle.target import host_target
from modelc.formats.modelc.compiled import START

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="executables are Linux's")

PROGRAM = b"""
import sys
from modelc_boot import embedded
embedded.install()
import asyncio, ctypes, decimal, hashlib, json, os, ssl, struct, zlib
print(json.dumps({
    "arguments": sys.argv[1:],
    "streams": [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)],
    "flags": [sys.flags.isolated, sys.flags.no_site, sys.flags.ignore_environment, sys.flags.utf8_mode],
    "path": sys.path,
    "places": [json.__file__, getattr(sys.modules["_ctypes"], "__file__", "/proc/self/inside"), ssl.__file__],
    "sha256": hashlib.sha256(b"").hexdigest()[:8],
    "unbuffered": sys.stdout.write_through,
    "zlib": zlib.decompress(zlib.compress(b"zlib")).decode(),
}))
sys.exit(7)
"""
SHORT = b"import sys\nprint(sys.argv[1:])\n"


@pytest.fixture(scope="module")
def made(python: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("executable") / "program", python, PROGRAM)


def write(path: Path, python: Interpreter, program: bytes, glibc: int | None = None, weights_bytes: int = 0) -> Path:
    target = host_target()
    assert target is not None
    beginning = executable(launcher(target), python, python.glibc_minor if glibc is None else glibc)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in {**beginning.files, **starters(), MAIN: program}.items():
            add(archive, name, content, zipfile.ZIP_STORED)
    tail = made.getvalue()
    archive_at = START + weights_bytes
    with path.open("wb") as file:
        file.write(beginning.head(tail, archive_at, archive_at + len(tail)))
        file.seek(archive_at)
        file.write(tail)
    path.chmod(0o755)
    return path


def run(command: Sequence[object], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    words = [os.fspath(word) if isinstance(word, Path) else word for word in command]
    return subprocess.run(words, env=env or {}, capture_output=True, text=True, check=False, timeout=60)  # type: ignore[arg-type]


def said_by(result: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert result.returncode == 7, result.stderr
    assert result.stderr == ""
    said: dict[str, object] = json.loads(result.stdout)
    assert not [place for place in said.pop("streams") if "exe" in place or "memfd" in place]  # type: ignore[attr-defined]
    return said


def test_it_runs_on_its_own_python_and_imports_from_itself(made: Path) -> None:
    said = said_by(run([made, "--listen", "ü", "-I", ""]))
    assert said["arguments"] == ["--listen", "ü", "-I", ""]
    assert said["flags"] == [1, 1, 1, 1]
    assert all(path.startswith("/proc/self/exe") for path in said["path"])  # type: ignore[attr-defined]
    assert all(place.startswith("/proc/self/") for place in said["places"])  # type: ignore[attr-defined]
    assert (said["sha256"], said["zlib"], said["unbuffered"]) == ("e3b0c442", "zlib", False)


def test_neither_variables_of_python_nor_other_libraries_disturb_it(made: Path, tmp_path: Path) -> None:
    for name in ("json.py", "os.py", "encodings.py", "libz.so.1", "libffi.so.8", "libpython3.so"):
        (tmp_path / name).write_text("not what it seems")
    env = dict.fromkeys(("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "LD_LIBRARY_PATH"), str(tmp_path))
    env |= {"PYTHONMALLOC": "nonsense", "PYTHONUTF8": "x", "PYTHONWARNINGS": "error", "LC_ALL": "nowhere"}
    assert said_by(run([made], env)) == said_by(run([made]))


def test_output_is_not_kept_back_where_the_environment_says_so(made: Path) -> None:
    assert said_by(run([made], {"PYTHONUNBUFFERED": "1"}))["unbuffered"] is True
    assert said_by(run([made], {"PYTHONUNBUFFERED": ""}))["unbuffered"] is False


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams_are_not_taken_by_its_own_files(made: Path, closed: str) -> None:
    said_by(run(["sh", "-c", f'exec "$0" {closed}', made], {"PATH": os.environ["PATH"]}))
    assert run(["sh", "-c", f'exec "$0" >&- {closed}', made], {"PATH": os.environ["PATH"]}).returncode == 7


def test_it_finds_itself_under_every_name(made: Path, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a folder \xfc \xc3\xbc"))
    odd.mkdir()
    (odd / "link").symlink_to(shutil.copy2(made, odd / "named"))
    for command in ([odd / "named"], [odd / "link"]):
        said_by(run(command))
    said_by(run(["sh", "-c", "named"], {"PATH": f"{os.fsdecode(odd)}:{os.environ['PATH']}"}))
    said_by(subprocess.run([], executable=made, env={}, capture_output=True, text=True, check=False))


def test_weights_of_more_than_4_gib_in_front_are_no_obstacle(python: Interpreter, tmp_path: Path) -> None:
    file = write(tmp_path / "large", python, PROGRAM, weights_bytes=(5 << 30) + 3)  # a hole: it takes no space
    assert file.stat().st_size > 5 << 30
    said_by(run([file]))


def test_the_systems_own_linker_makes_it_too(
    python: Interpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is none")
    monkeypatch.setattr(linker.importlib.util, "find_spec", lambda name: None)
    said_by(run([write(tmp_path / "linked", python, PROGRAM)]))


def test_two_builds_are_the_same_bytes(made: Path, tmp_path: Path) -> None:
    assert write(tmp_path / "again", interpreter(), PROGRAM).read_bytes() == made.read_bytes()


def test_it_needs_nothing_but_glibc(made: Path, tmp_path: Path) -> None:
    said = said_by(run([*in_bare_root(tmp_path, made), "/program", "x"]))
    assert said["arguments"] == ["x"]


def in_bare_root(root: Path, program: Path) -> list[str]:
    """A command that runs its arguments where there are the files of glibc, and a copy of `program` at `/program`."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("chroot"):
        pytest.skip("takes root, unshare and chroot")
    listed = subprocess.run(["ldd", sys.executable], capture_output=True, text=True, check=True).stdout
    libc = Path(next(line.split()[2] for line in listed.splitlines() if "libc.so.6" in line))
    (root / "proc").mkdir()
    for name in ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"):
        (root / libc.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
        shutil.copy(libc.with_name(name), root / libc.with_name(name).relative_to("/"))
    loader = Path(next(word for word in listed.split() if "/ld-linux" in word))
    (root / loader.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
    shutil.copy(loader, root / loader.relative_to("/"))
    shutil.copy2(program, root / "program")
    script = 'mount -t proc proc "$0/proc" && exec chroot "$@"'
    command = ["unshare", "-m", "env", f"PATH={os.environ['PATH']}", "sh", "-c", script, str(root)]
    if subprocess.run([*command, "/", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this computer lets nobody make a root of one's own")
    return [*command, str(root)]


# ------------------------------------------------------------------------------------------------------- bad input


def damaged(made: Path, tmp_path: Path, change: Callable[[bytearray], object]) -> str:
    """What is said by a copy that was changed, where that is one line."""
    data = bytearray(made.read_bytes())
    change(data)
    file = tmp_path / "damaged"
    file.write_bytes(data)
    file.chmod(0o755)
    result = run([file])
    assert result.returncode == 1, result
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith(f"modelc: {file}: ")
    return result.stderr


def place_of(made: Path, name: str) -> int:
    with zipfile.ZipFile(made) as archive:
        return archive.getinfo(name).header_offset + 100


@pytest.mark.parametrize("where", ["padding", "record", "python", "library.zip", MAIN])
def test_a_flipped_bit_is_found_before_anything_is_run(
    made: Path, python: Interpreter, tmp_path: Path, where: str
) -> None:
    at = {"padding": 50_000, "record": RECORD_AT + 70}.get(where)
    if at is None:
        at = place_of(made, python.libraries[-1] if where == "python" else where)
    said = damaged(made, tmp_path, lambda data: data.__setitem__(at, data[at] ^ 16))
    assert said.endswith("the file is damaged or not complete: copy it again\n")


@pytest.mark.parametrize("kept", [20_000, START, START + 1, 5_000_000, -1])
def test_a_file_that_was_cut_off_is_told(made: Path, tmp_path: Path, kept: int) -> None:
    assert "not complete" in damaged(made, tmp_path, lambda data: data.__delitem__(slice(kept, None)))


def test_a_file_that_goes_on_behind_its_end_is_told(made: Path, tmp_path: Path) -> None:
    assert "damaged" in damaged(made, tmp_path, lambda data: data.append(0))


@pytest.mark.parametrize(
    "libraries",
    [
        [],
        [Span(START - 8, 16)],
        [Span(START, 0)],
        [Span(START, 1 << 40)],
        [Span(1 << 63, 16)],
        [Span(START + 8, (1 << 64) - 8)],
        [Span((1 << 64) - 16, 32)],
    ],
)
def test_places_outside_the_file_are_not_believed(made: Path, tmp_path: Path, libraries: list[Span]) -> None:
    def change(data: bytearray) -> None:
        plain = bytes(data[START : START + 4096])
        data[RECORD_AT:START] = record(bytes(data[:RECORD_AT]), len(data), 17, plain, START, libraries)

    assert "damaged" in damaged(made, tmp_path, change)


@pytest.mark.parametrize(("plain_at", "length"), [(0, 64), (1 << 63, 64), ((1 << 64) - 64, 64), (START, 0)])
def test_neither_is_a_part_outside_the_file(made: Path, tmp_path: Path, plain_at: int, length: int) -> None:
    def change(data: bytearray) -> None:
        made = record(bytes(data[:RECORD_AT]), len(data), 17, bytes(length), plain_at, [Span(plain_at, 8)])
        data[RECORD_AT:START] = made

    assert "damaged" in damaged(made, tmp_path, change)


def test_a_library_that_is_none_is_one_line_of_the_loaders(made: Path, tmp_path: Path) -> None:
    def change(data: bytearray) -> None:
        plain = bytes(data[START : START + 4096])
        data[RECORD_AT:START] = record(bytes(data[:RECORD_AT]), len(data), 17, plain, START, [Span(START, 4096)])

    assert "invalid ELF header" in damaged(made, tmp_path, change)


def test_an_older_glibc_is_told_which_one_is_needed(python: Interpreter, tmp_path: Path) -> None:
    result = run([write(tmp_path / "new", python, SHORT, glibc=1234)])
    here = os.confstr("CS_GNU_LIBC_VERSION").split()[1]  # type: ignore[union-attr]
    assert result.stderr == f"modelc: built for glibc 2.1234 or newer, this system has {here}\n"
    assert result.returncode == 1
