"""Broken and hostile files and folders, each with how the one line begins that a user gets: `formats/expected.json`.

Those in `models` are read without an error, and refused when they are loaded or asked.

A message names the file without its folder. What Python's own parsers say at the end of a line is left out.
"""

import json
from pathlib import Path

import pytest

from modelc.errors import ModelcError
from modelc.formats import open_model
from modelc.runtime.loading import loaded_model
from modelc.runtime.options import Options

FOLDER = Path(__file__).with_name("formats")
EXPECTED: dict[str, str] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def use(path: Path) -> None:
    """Do with a file what its user would."""
    model = open_model(path)
    if path.parent.name == "models":
        with loaded_model(model, Options(1)) as loaded:
            loaded.generate([1, 2], max_tokens=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_broken_file_is_answered_with_its_one_line(name: str) -> None:
    path = FOLDER / name
    with pytest.raises(ModelcError) as caught:
        use(path)
    line = str(caught.value).replace(f"{path.parent}/", "")
    assert line.startswith(EXPECTED[name])
    assert line.isprintable()


@pytest.mark.slow
def test_every_file_has_its_line() -> None:
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*")}
    assert files - {"onnx/data.bin"} == set(EXPECTED)
