"""Options that several commands take."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from modelc.cli.completers import model_references, stored_names
from modelc.errors import BadInputError
from modelc.settings import Settings, load_settings, store_folder
from modelc.store import Store

StoreOption = Annotated[Path | None, Parameter(help="Folder of the store, instead of the configured one.")]
ModelOption = Annotated[str, Parameter(completer=model_references)]  # a name in the store, or a path
NameOption = Annotated[str, Parameter(completer=stored_names)]  # a name in the store
JsonFlag = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON for programs.")]
KvOption = Annotated[
    Literal["f16", "f32", "int8", "mixed"] | None,
    Parameter(help="Type of the K/V cache; mixed: the newest in f32, older ones in int8. [default: f16]"),
]
ActivationsOption = Annotated[
    Literal["int8", "int16"], Parameter(help="Precision beside quantized weights: int16 is exacter, slower.")
]
QuietFlag = Annotated[
    bool,
    Parameter(
        name=["--quiet", "-q"], negative="", show_default=False, help="Print only what a script needs, and no progress."
    ),
]
UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}


def open_store(folder: Path | None, settings: Settings | None = None) -> Store:
    """Return the store in `folder`, or the configured one."""
    if folder is not None:
        return Store(folder)
    return Store(store_folder(load_settings() if settings is None else settings))


def parse_size(text: str, param: str) -> int:
    """Return the bytes of a size like `2GiB`, `1.5GB`, `800 MB` or `65536`; upper and lower case are equal.

    Args:
        text: the size.
        param: the option it was given to, for errors.

    Raises:
        BadInputError: not a size, or none at all.
    """
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([a-z]*)", text.strip().lower())
    n_bytes = int(Decimal(found[1]) * UNITS.get(found[2], 0)) if found is not None else 0
    if n_bytes == 0:
        expected = "one like 2GiB, 500MB, or a number of bytes"
        raise BadInputError("not a size", param=param, got=repr(text), expected=expected)
    return n_bytes


def parse_numbers(text: str, param: str, low: int, high: int) -> tuple[int, ...]:
    """Return the whole numbers of a list like `1,2,4`, in their order.

    Args:
        text: the list.
        param: the option it was given to, for errors.
        low: the least that a number may be.
        high: the most.

    Raises:
        BadInputError: not a list, or a number out of range.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,9}", word) and low <= int(word) <= high for word in words):
        expected = f"numbers from {low} to {high} with commas between"
        raise BadInputError("not a list of numbers", param=param, got=repr(text), expected=expected)
    return tuple(dict.fromkeys(map(int, words)))
