import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from modelc.cli.app import COMMANDS
from tests.cli.conftest import Modelc

ASK = """
source {script}
COMP_WORDS=({words})
COMP_CWORD={number}
COMP_LINE="{line}"
COMP_POINT=${{#COMP_LINE}}
_modelc
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_with_every_command(modelc: Modelc, shell: str) -> None:
    result = modelc("completions", shell)
    assert (result.code, result.err) == (0, "")
    assert all(command in result.out for command in COMMANDS)


def test_another_shell_is_refused(modelc: Modelc) -> None:
    assert modelc("completions", "tcsh").code == 2


@pytest.fixture
def complete(modelc: Modelc, tmp_path: Path) -> object:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    (tmp_path / "script").write_text(modelc("completions", "bash").out)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "modelc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m modelc "$@"\n')
    (tmp_path / "bin" / "modelc").chmod(0o755)
    (tmp_path / "empty").mkdir()
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }

    def ask(*words: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        text = ASK.format(script=tmp_path / "script", words=quoted, number=len(words) - 1, line=" ".join(words))
        done = subprocess.run(
            [bash, "-c", text], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path / "empty"
        )
        return done.stdout.split()

    return ask


def test_bash_completes_commands_options_choices_and_models(modelc: Modelc, gguf: Path, complete: object) -> None:
    for name in ("smollm2", "smollm2", "other"):
        modelc("pack", gguf, "--name", name)
    assert callable(complete)
    assert complete("modelc", "sw") == ["switch"]
    assert complete("modelc", "run", "--kv-m") == ["--kv-memory"]
    assert complete("modelc", "completions", "f") == ["fish"]
    assert complete("modelc", "chat", "sm") == ["smollm2", "smollm2:1", "smollm2:2"]
    assert complete("modelc", "rm", "") == ["other", "smollm2"]
