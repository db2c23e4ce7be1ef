"""`modelc cp`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import ModelOption, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.copying import copy_model

EXAMPLES = """Examples:
  modelc cp smollm2 smollm2-backup      a new name in the store
  modelc cp smollm2:1 ./smollm2.modelc  out of the store
  modelc cp ./smollm2.modelc smollm2    into the store"""


def cp(
    source: Annotated[ModelOption, Parameter(help="A name in the store (NAME or NAME:VERSION), or a .modelc file.")],
    target: Annotated[str, Parameter(help="A new name for the store; or a file, with a folder or .modelc in it.")],
    /,
    *,
    store: StoreOption = None,
) -> None:
    """Copy a model under another name, into or out of the store, and print the new path; overwrites nothing."""
    with ProgressBar() as bar:
        copied: Path = copy_model(source, target, open_store(store), bar)
    print(copied)
