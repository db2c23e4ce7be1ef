import json
import os
import sys
from pathlib import Path

import pytest

from modelc.cli import conform

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
