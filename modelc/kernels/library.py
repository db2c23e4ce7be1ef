"""Machine code of opcodes that was compiled ahead of time: a shared library, and no compiler in the process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from os import PathLike, fspath

from modelc.errors import BadFileError
from modelc.kernels.source import Progress

PREFIX = "modelc_"


def symbol_of(name: str) -> str:
    """What a library calls the function `name` of the catalogue."""
    return PREFIX + name.replace(".", "__")


class KernelLibrary:
    """Addresses of the functions in a shared library.

    Attributes:
        path: of the library.

    Raises:
        BadFileError: the system does not load it.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)
        try:
            self._library = ctypes.CDLL(self.path)
        except OSError as error:
            raise BadFileError("the compiled kernels cannot be loaded", path=self.path, got=error) from None

    def addresses(self, names: Sequence[str], progress: Progress | None = None) -> dict[str, int]:
        """Machine addresses of opcodes and other functions (see `catalogue`); nothing is compiled.

        Raises:
            BadFileError: the library was built without one of them.
        """
        found = {}
        for name in names:
            try:
                function = getattr(self._library, symbol_of(name))
            except AttributeError:
                hint = "compile the model again, with this version of modelc"
                raise BadFileError(
                    "compiled kernels lack a function", path=self.path, expected=name, hint=hint
                ) from None
            found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
        return found
