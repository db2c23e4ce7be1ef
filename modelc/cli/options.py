"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.settings import Settings, load_settings, store_folder
from modelc.store import Store

StoreOption = Annotated[Path | None, Parameter(help="Folder of the store, instead of the configured one.")]
JsonFlag = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON for programs.")]


def open_store(folder: Path | None, settings: Settings | None = None) -> Store:
    """Return the store in `folder`, or the configured one."""
    if folder is not None:
        return Store(folder)
    return Store(store_folder(load_settings() if settings is None else settings))
