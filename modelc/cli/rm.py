"""`modelc rm`."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import NameOption, StoreOption, open_store
from modelc.cli.text import printable
from modelc.errors import BadInputError
from modelc.store import REFERENCE

EXAMPLES = """Examples:
  modelc rm smollm2 --all      delete the model and all its versions
  modelc rm smollm2:1          delete version 1
  modelc rm smollm2 --force    delete the active file, keep the versions"""


def rm(
    name: Annotated[NameOption, Parameter(help="A model's name in the store, or NAME:VERSION.")],
    /,
    *,
    all_: Annotated[
        bool, Parameter(name="--all", negative="", show_default=False, help="Delete every version too.")
    ] = False,
    force: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Delete the active file although versions exist, and keep those."
        ),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Delete a model from the store and say what was deleted; servers that run go on with what they have."""
    found = open_store(store)
    version: re.Match[str] | None = REFERENCE.fullmatch(name)
    removed: list[Path]
    if version is None:
        removed = found.remove(name, every_version=all_, keep_versions=force)
    elif all_ or force:
        raise BadInputError("one version is meant", param="--all or --force", got=name, hint="leave the option out")
    else:
        removed = found.remove_version(version["name"], int(version["version"]))
    for path in removed:
        print(f"deleted {printable(str(path))}")
