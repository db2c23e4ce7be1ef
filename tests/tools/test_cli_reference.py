import re
from pathlib import Path

from modelc.cli.app import COMMANDS
from tools.cli_reference import PATH, reference

ROOT = Path(__file__).parents[2]


def test_the_reference_is_what_the_commands_say() -> None:
    assert (ROOT / PATH).read_text("utf-8") == reference(), "run `make docs`"


def test_every_command_has_its_part_with_examples() -> None:
    parts = re.split(r"^## ", reference(), flags=re.MULTILINE)
    for command in COMMANDS:
        part = next(part for part in parts if part.startswith(f"modelc {command}\n"))
        assert f"modelc {command}" in part.partition("```sh")[2]
