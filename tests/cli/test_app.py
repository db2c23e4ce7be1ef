import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from modelc.cli import app
from modelc.errors import BadInputError
from modelc.version import __version__
from tests.cli.conftest import Modelc
from tests.cli.processor_time import processor_s

HELP_S = 0.25


def shell(*tokens: str, terminal: str = "dumb") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "modelc", *tokens]
    environment = {**os.environ, "TERM": terminal}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)


def test_help_lists_every_command_with_examples(modelc: Modelc) -> None:
    result = modelc("--help")
    assert result.code == 0
    for command in app.COMMANDS:
        assert re.search(rf"^│ {command} +\w", result.out, re.MULTILINE)
    assert "modelc pull" in result.out.partition("Examples:")[2]


@pytest.mark.parametrize("command", app.COMMANDS)
def test_the_help_of_each_command_has_examples(modelc: Modelc, command: str) -> None:
    result = modelc(command, "--help")
    assert result.code == 0
    assert f"modelc {command}" in re.split("Examples?:", result.out)[1]


def test_help_is_there_at_once() -> None:
    assert processor_s("--help") < HELP_S


@pytest.mark.parametrize("module", ["numpy", "numba", "litestar", "onnx", "modelc.formats", "modelc.runtime"])
def test_the_command_line_is_parsed_without_heavy_modules(module: str) -> None:
    code = f"import sys, modelc.cli; modelc.cli.main(['run', '--help']); sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_version_is_shown_with_the_commit(modelc: Modelc) -> None:
    for tokens in (["version"], ["--version"]):
        result = modelc(*tokens)
        assert result.code == 0
        assert re.fullmatch(rf"modelc {re.escape(__version__)} \(git ([0-9a-f]{{12}}|unknown)\)\n", result.out)


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (["lst"], 'Did you mean "list"?'),
        (["run", "--prot", "1"], "Did you mean --port?"),
        (["pack"], "requires an argument"),
        (["run", "--kv", "f8"], 'Choose from: "f16", "f32"'),
        (["run", "--port", "70000"], "Must be <= 65535"),
        (["run", "--threads", "0"], "Must be >= 1"),
        (["run", "--threads", "many"], 'unable to convert "many" into int'),
        (["list", "extra"], "extra"),
    ],
)
def test_usage_errors_are_one_line_with_code_2(modelc: Modelc, tokens: list[str], told: str) -> None:
    result = modelc(*tokens)
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"modelc: [^\n]+ --help`\.\n", result.err)
    assert told in result.err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), 1, "No space left on device: /x; make room"),
        (MemoryError(), 1, "not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 1, "Cannot allocate memory; close other programs"),
        (RuntimeError("can't start new thread"), 1, "the system allows no more threads"),
        (RecursionError("deep"), 1, "internal error: RecursionError: deep"),
        (BadInputError("wrong\x1b[31m", param="name"), 2, "wrong\\x1b[31m: 'name'"),
        (ValueError("two\nlines \x1b"), 1, "two\\nlines \\x1b"),
    ],
)
def test_whatever_goes_wrong_is_one_line_and_no_traceback(
    modelc: Modelc, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, told: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("modelc.cli.version.version", fail)
    result = modelc("version")
    assert result.code == code
    assert told in result.err
    assert result.err.count("\n") == 1


def test_an_unforeseen_error_shows_its_place_when_asked(modelc: Modelc, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("odd")

    monkeypatch.setattr("modelc.cli.version.version", fail)
    monkeypatch.setenv("MODELC_DEBUG", "1")
    assert "Traceback" in modelc("version").err


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command = [sys.executable, "-m", "modelc", "list"]
        done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_wrong_config_file_is_one_line(modelc: Modelc, home: Path) -> None:
    (home / ".modelc").mkdir()
    (home / ".modelc" / "config.toml").write_text("prot = 1")
    result = modelc("list")
    assert result.code == 2
    assert "did you mean 'port'" in result.err
    assert result.err.count("\n") == 1


def test_no_colours_are_written_where_output_is_not_a_terminal() -> None:
    done = shell("--help", terminal="xterm-256color")
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("tokens", "code"), [("version", 0), ("list", 0), ("inspect no-such-model", 1)])
def test_closed_outputs_change_nothing_but_what_is_seen(closed: str, tokens: str, code: int) -> None:
    line = f"exec {sys.executable} -m modelc {tokens} {closed}"
    result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code
    assert "rror" not in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_no_file_gets_the_descriptor_of_a_closed_output(tmp_path: Path) -> None:
    code = (
        "import modelc.cli as cli; cli.main(['version']); made = open('told', 'w'); print(made.fileno() > 2, file=made)"
    )
    line = f'exec {sys.executable} -c "{code}" >&- 2>&-'
    assert subprocess.run(line, shell=True, check=False, timeout=60, cwd=tmp_path).returncode == 0
    assert (tmp_path / "told").read_text() == "True\n"


def test_who_is_told_to_end_removes_what_is_half_done(tmp_path: Path) -> None:
    program = """
import tempfile, time
from cyclopts import App
from modelc.cli.app import main
app = App(result_action="return_value")
@app.default
def work() -> None:
    with tempfile.TemporaryDirectory(dir="."):
        print("ready", flush=True)
        time.sleep(60)
main(None, app)
"""
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (143, "")
    assert list(folder.iterdir()) == []
