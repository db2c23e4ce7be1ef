"""What packages in a compiled file say about themselves; a module of its own, as few starts ask."""

from __future__ import annotations

import os
from importlib.metadata import Distribution
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .finder import Modules


class CarriedDistribution(Distribution):
    """A package of the archive of modules.

    Args:
        modules: the archive.
        folder: the `.dist-info` there.
    """

    def __init__(self, modules: Modules, folder: str) -> None:
        self._modules, self._folder = modules, folder

    @property
    def version(self) -> str:
        """The version, without reading all that the package says."""
        return self._folder.removesuffix(".dist-info").partition("-")[2]

    def read_text(self, filename: str | os.PathLike[str]) -> str | None:
        """A file of the `.dist-info`; None where it is not carried."""
        try:
            return self._modules.read(self._folder + "/" + str(filename)).decode("utf-8")
        except KeyError:
            return None

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        """No file has a place of its own."""
        raise NotImplementedError("files in a compiled file have no place of their own")
