"""`modelc switch`."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.options import NameOption, StoreOption, open_store

EXAMPLES = """Examples:
  modelc switch smollm2 1    version 1 is what `smollm2` means from now on"""


def switch(
    name: Annotated[NameOption, Parameter(help="A model's name in the store.")],
    version: Annotated[int, Parameter(help="The version, as `modelc list` shows it.", validator=Number(gte=1))],
    /,
    *,
    store: StoreOption = None,
) -> None:
    """Make another version of a model the active one; servers that run go on with theirs."""
    before = open_store(store).switch(name, version)
    told = f"was {version} before" if before == version else f"before: {before or 'none'}"
    print(f"{name}: version {version} is active ({told})")
