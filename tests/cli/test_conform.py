import json
import os
import sys
from pathlib import Path

import pytest

from modelc.cli import conform
from tests.cli.conftest import Modelc

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs scripts that start by themselves")


def compiled(path: Path, code: str) -> str:
    """A script in place of a compiled file."""
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return str(path)


def test_the_model_is_served_with_the_options_that_the_file_has_built_in(gguf: Path, tmp_path: Path) -> None:
    options = [["--max-context", "64"], ["--bind", "0.0.0.0"], ["--api-key", "k"], ["--lora", "a", "--lora", "b"]]
    file = compiled(tmp_path / "m.pyz", f"print({json.dumps({'options': options})!r})")
    command = conform._run_command(str(gguf), file, tmp_path)
    assert command[-6:] == ["--max-context", "64", "--lora", "a", "--lora", "b"]
    assert not {"--bind", "--api-key"} & set(command)


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "print('no JSON')", "print('{}')"])
def test_a_file_that_tells_no_options_has_none(tmp_path: Path, code: str) -> None:
    assert conform._built_in(compiled(tmp_path / "m.pyz", code)) == []


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["model.gguf", "none.pyz"], "no such compiled file"),
        (["none.gguf", "http://127.0.0.1:9"], "no such file"),
        (["http://127.0.0.1:9", "http://127.0.0.1:9", "--threads", "1"], "has its own"),
        (["model.gguf", "none.pyz", "--threads", "1,x"], "not numbers of threads"),
        (["model.gguf", "none.pyz", "--threads", "1,,2"], "not numbers of threads"),
        (["model.gguf", "none.pyz", "--threads", ""], "not numbers of threads"),
        (["model.gguf"], "COMPILED"),
        (["http://127.0.0.1:many", "http://127.0.0.1:9"], "not the address of a server"),
    ],
)
def test_bad_arguments_are_one_line(
    modelc: Modelc, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.gguf").symlink_to(gguf)
    result = modelc("conform", *tokens)
    assert result.code == (1 if said == "no such file" else 2)
    assert len(result.err.splitlines()) == 1
    assert said in result.err
