"""A compiled file is started as its users start it: as a process, on a computer that has nothing but Python."""

import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from modelc.bundle.boot.archive import COMMENT_BYTES, WEIGHTS_AT
from modelc.bundle.distributions import own_files
from modelc.bundle.modules import HERE
from modelc.formats import modelc, open_model
from modelc.runtime.loading import load
from modelc.version import version_line
from tests.bundle.conftest import LEAST, build, serving, start

VECTOR = [i / 16 - 0.5 for i in range(16)]


def post(url: str, body: object) -> dict[str, object]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def answer_of(file: Path, env: dict[str, str], *tokens: str) -> object:
    with serving([sys.executable, str(file), *tokens], env) as url:  # on the port that was built in
        return post(f"{url}/infer", {"input": VECTOR})["output"]


@pytest.fixture(scope="session")
def expected(weights: Path) -> object:
    with load(weights, threads=1) as model:
        return model.infer(VECTOR).tolist()


def test_it_starts_by_its_own_name_and_what_is_given_wins_over_what_is_built_in(
    built: Path, environment: dict[str, str], expected: object
) -> None:
    assert os.access(built, os.X_OK)
    with serving([str(built), "--listen", "localhost:0"], environment) as url:
        assert "localhost" in url or "127.0.0.1" in url
        assert post(f"{url}/infer", {"input": VECTOR})["output"] == expected


def test_two_builds_are_the_same_bytes(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = own_files()  # once: whoever works on modelc may save a file between the two
    monkeypatch.setattr("modelc.bundle.compiling.own_files", lambda: sources)
    first, second = (build(weights, tmp_path / f"{name}.pyz").read_bytes() for name in ("first", "second"))
    assert first == second


def test_the_packages_around_it_are_not_seen(
    built: Path, environment: dict[str, str], expected: object, tmp_path: Path
) -> None:
    for name in ("numpy", "litestar", "modelc", "json", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    broken = environment | {"PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "numpy.py")}
    assert answer_of(built, broken) == expected


def test_neither_compiler_is_inside_or_imported(built: Path, environment: dict[str, str]) -> None:
    with (
        zipfile.ZipFile(built) as archive,
        archive.open(f"{HERE}/modules.zip") as file,
        zipfile.ZipFile(file) as modules,
    ):
        names = {name.partition("/")[0] for name in modules.namelist()}
    assert {"modelc", "litestar", "numpy"} <= names
    assert not {"numba", "llvmlite", "onnx", "ziglang"} & names


@pytest.mark.parametrize("in_memory", [False, True])
def test_without_a_home_and_without_a_folder_to_write_it_serves_too(
    built: Path, environment: dict[str, str], expected: object, tmp_path: Path, in_memory: bool
) -> None:
    (tmp_path / "file").write_bytes(b"")
    place = {"MODELC_CACHE": str(tmp_path / "file")} if in_memory else {"TMPDIR": str(tmp_path)}
    assert answer_of(built, {"PATH": environment["PATH"], "HOME": "/nonexistent", **place}) == expected
    assert [each.name for each in tmp_path.glob(f"modelc-{os.getuid()}/*")] == [] or not in_memory


def test_first_starts_at_the_same_time_do_not_disturb_each_other(
    built: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    env = environment | {"MODELC_CACHE": str(tmp_path)}
    command = [sys.executable, str(built), "--info"]
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    results = [(process.communicate(), process.returncode) for process in processes]
    assert [code for _, code in results] == [0] * 4, results
    assert len(list((tmp_path / "compiled").iterdir())) == 1


def test_what_was_deleted_from_the_cache_is_unpacked_again(
    built: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    env = environment | {"MODELC_CACHE": str(tmp_path)}
    assert start(built, "--info", env=env).returncode == 0
    (modules,) = tmp_path.rglob("modules.zip")
    modules.unlink()
    assert start(built, "--info", env=env).returncode == 0
    assert modules.exists()
    assert [each.name for each in (tmp_path / "compiled").iterdir()] == [modules.parent.name]


def test_info_says_what_is_inside(built: Path, environment: dict[str, str]) -> None:
    result = start(built, "--info", env=environment)
    about = json.loads(result.stdout)
    assert about["architecture"] == "mlp"
    assert about["isas"] == [LEAST.name]
    assert about["isa"] == LEAST.name
    assert about["options"] == [["--threads", "1"], ["--port", "0"]]
    assert list(about["payloads"]) == [HERE]


def test_verify_says_that_every_byte_is_right(built: Path, environment: dict[str, str]) -> None:
    result = start(built, "--verify", env=environment)
    assert result.returncode == 0, result.stderr
    assert "3 tensors" in result.stdout
    assert "every byte as it was written" in result.stdout


def test_the_version_is_said_first(built: Path, environment: dict[str, str]) -> None:
    result = start(built, "--listen", "nothing", env=environment)
    assert result.stderr.startswith(version_line())
    assert start(built, "--version", env=environment).stdout.strip() == version_line()


def test_help_has_the_options_of_run_without_those_that_are_decided(built: Path, environment: dict[str, str]) -> None:
    text = start(built, "--help", env=environment).stdout
    assert all(option in text for option in ("--listen", "--threads", "--kv", "--isa", "--verify", "--lora", "--seed"))
    assert not any(option in text for option in ("--aot", "--store", "--kernels"))


def test_modelc_reads_it_like_a_model(built: Path, weights: Path) -> None:
    model, inside = open_model(weights), open_model(built)
    assert inside.tensors.keys() == model.tensors.keys()
    assert all(inside.tensors[name].stored.tobytes() == model.tensors[name].stored.tobytes() for name in model.tensors)
    assert len(modelc.verify(built).entries) == 3


# ------------------------------------------------------------------------------------------------------- bad input


def damaged(built: Path, tmp_path: Path, change: Callable[[bytearray], object]) -> Path:
    file = tmp_path / "damaged.pyz"
    data = bytearray(built.read_bytes())
    change(data)
    file.write_bytes(data)
    return file


def flip(at: int) -> Callable[[bytearray], object]:
    return lambda data: data.__setitem__(at, data[at] ^ 4)


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in result.stderr.splitlines() if line != version_line()]
    assert result.returncode != 0
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


@pytest.mark.parametrize("where", ["beginning", "weights", "payload", "directory", "comment"])
def test_a_flipped_bit_is_found_wherever_it_is(
    built: Path, environment: dict[str, str], tmp_path: Path, where: str
) -> None:
    size = built.stat().st_size
    weights_end = WEIGHTS_AT + len(modelc.compiled.map_packed(built))
    with zipfile.ZipFile(built) as archive:
        middle = archive.getinfo(f"{HERE}/modules.zip").header_offset + 5000
    at = {
        "beginning": 2000,
        "weights": weights_end - 9,
        "payload": middle,
        "directory": size - COMMENT_BYTES - 300,
        "comment": size - 5,
    }[where]
    said = one_line(start(damaged(built, tmp_path, flip(at)), "--verify", env=environment))
    assert "damaged" in said


def test_a_damaged_payload_is_not_unpacked(built: Path, environment: dict[str, str], tmp_path: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        middle = archive.getinfo(f"{HERE}/modules.zip").header_offset + 5000
    env = environment | {"MODELC_CACHE": str(tmp_path / "cache")}
    said = one_line(start(damaged(built, tmp_path, flip(middle)), env=env))
    assert "modules.zip" in said
    assert list((tmp_path / "cache" / "compiled").iterdir()) == []


def test_damaged_files_in_the_cache_are_found_by_verify(
    built: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    env = environment | {"MODELC_CACHE": str(tmp_path)}
    assert start(built, "--verify", env=env).returncode == 0
    (kernels,) = tmp_path.rglob(f"{LEAST.name}.so")
    data = bytearray(kernels.read_bytes())
    data[-1] ^= 1
    kernels.write_bytes(data)
    said = one_line(start(built, "--verify", env=env))
    assert f"{LEAST.name}.so is damaged: delete the folder" in said
    assert "copy it again" not in said


def test_another_version_of_python_is_told_which_one_to_use(
    weights: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelc.bundle.compiling.HERE", "3.99")
    monkeypatch.setattr("modelc.bundle.distributions.HERE", "3.99")
    file = build(weights, tmp_path / "other.pyz", pythons=["3.99"])
    said = one_line(start(file, env=environment))
    assert f"built for CPython 3.99, this is cpython {HERE}" in said
    assert "--python 3.99," in said


def test_a_folder_that_others_can_write_is_not_used(built: Path, environment: dict[str, str], tmp_path: Path) -> None:
    shared, own = tmp_path / "shared" / "compiled", tmp_path / "elsewhere"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    own.mkdir()
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "compiled").symlink_to(own)
    for folder in (tmp_path / "shared", tmp_path / "link"):
        assert start(built, "--info", env=environment | {"MODELC_CACHE": str(folder)}).returncode == 0
    assert list(shared.iterdir()) == list(own.iterdir()) == []


def test_a_link_in_the_place_of_the_unpacked_folder_is_replaced(
    built: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    env = environment | {"MODELC_CACHE": str(tmp_path / "cache")}
    assert start(built, "--info", env=env).returncode == 0
    (folder,) = (tmp_path / "cache" / "compiled").iterdir()
    shutil.move(folder, tmp_path / "planted")
    folder.symlink_to(tmp_path / "planted")
    assert start(built, "--info", env=env).returncode == 0
    assert folder.is_dir()
    assert not folder.is_symlink()
    assert (tmp_path / "planted" / "modules.zip").exists(), "what the link pointed to stays"


def test_a_full_disk_leaves_nothing_behind(built: Path, environment: dict[str, str], tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    result = subprocess.run(
        [sys.executable, str(built), "--info"],
        env=environment | {"MODELC_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert "too large" in one_line(result).lower()
    assert list((tmp_path / "compiled").iterdir()) == []


def test_few_open_files_are_more_where_the_system_allows_it_and_one_line_where_not(
    built: Path, environment: dict[str, str]
) -> None:
    for kind, code in (("-S", 0), ("-SH", 1)):
        command = ["bash", "-c", f'ulimit {kind} -n 20; exec "$0" "$1" --info', sys.executable, str(built)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == code
    assert one_line(result) == "modelc: at most 20 open files are allowed, it takes 128: see ulimit -n"


def test_it_serves_where_input_and_outputs_are_closed(
    built: Path, environment: dict[str, str], expected: object
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["sh", "-c", 'exec "$0" "$1" --port "$2" <&- >&- 2>&-', sys.executable, str(built), str(port)]
    with subprocess.Popen(command, env=environment) as process:
        try:
            assert answer_when_there(f"http://127.0.0.1:{port}/infer", {"input": VECTOR})["output"] == expected
        finally:
            process.terminate()
    assert process.returncode == 0


def answer_when_there(url: str, body: object) -> dict[str, object]:
    """The answer of a server that starts, and cannot say when it has."""
    for _ in range(300):
        with contextlib.suppress(urllib.error.URLError):
            return post(url, body)
        time.sleep(0.1)
    pytest.fail("no answer")


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["--info", "--verify"], "--info and --verify"),
        (["--listen", "nothing"], "listen"),
        (["--listen", "127.0.0.1:99999"], "99999"),
        (["--port", "-5"], "--port"),
        (["--nonsense"], "--nonsense"),
        (["--isa", "avx1024"], "avx1024"),
        (["a-model.gguf"], "a-model.gguf"),
    ],
)
def test_wrong_arguments_are_one_line(
    built: Path, environment: dict[str, str], tokens: list[str], expected: str
) -> None:
    result = start(built, *tokens, env=environment)
    assert expected in one_line(result)
    assert result.returncode == 2


def test_a_port_that_is_taken_is_one_line(built: Path, environment: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = one_line(start(built, "--port", str(taken.getsockname()[1]), env=environment))
    assert "in use" in said
