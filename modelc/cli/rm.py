"""`modelc rm`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import StoreOption, open_store
from modelc.cli.text import printable

EXAMPLES = """Examples:
  modelc rm smollm2 --all      delete the model and all its versions
  modelc rm smollm2 --force    delete the active file, keep the versions"""


def rm(
    name: Annotated[str, Parameter(help="A model's name in the store.")],
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", negative="", help="Delete every version too.")] = False,
    force: Annotated[
        bool, Parameter(negative="", help="Delete the active file although versions exist, and keep those.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Delete a model from the store and say what was deleted."""
    removed: list[Path] = open_store(store).remove(name, every_version=all_, keep_versions=force)
    for path in removed:
        print(f"deleted {printable(str(path))}")
