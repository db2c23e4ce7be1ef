"""Every error that modelc raises on purpose: one root, a few leaves by what the user can do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike, fspath

MAX_FIELD_CHARS = 300


class ModelcError(Exception):
    """An error with an answer for the user: `str(error)` is one line saying what, where, got, expected, next step.

    Args:
        what: The fault, without a final stop ("tensor data runs past the end of the file").
        path: The file or folder concerned.
        offset: Byte offset in that file.
        tensor: Name of the tensor concerned.
        param: Name of the argument, option or request field concerned.
        expected: What would have been right.
        got: What was found.
        hint: The next step ("download the file again").
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | PathLike[str] | None = None,
        offset: int | None = None,
        tensor: str | None = None,
        param: str | None = None,
        expected: object = None,
        got: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.path = None if path is None else fspath(path)
        self.offset = offset
        self.tensor = tensor
        self.param = param
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        where = [
            "" if self.path is None else _one_line(self.path),
            "" if self.tensor is None else f"tensor '{_one_line(self.tensor)}'",
            "" if self.offset is None else f"offset {self.offset}",
            "" if self.param is None else f"'{_one_line(self.param)}'",
        ]
        found = [
            "" if self.got is None else f"got {_one_line(str(self.got))}",
            "" if self.expected is None else f"expected {_one_line(str(self.expected))}",
        ]
        parts = (_one_line(self.what), ", ".join(filter(None, where)), ", ".join(filter(None, found)))
        line = ": ".join(filter(None, parts))
        return f"{line}; {_one_line(self.hint)}" if self.hint else line


class BadFileError(ModelcError):
    """A file is damaged, truncated, hostile, or not what it says it is: get another copy."""


class BadInputError(ModelcError):
    """An argument, option or request field is wrong (`param` names it): correct it."""


class NotFoundError(ModelcError):
    """A file, model, version or tensor that was asked for does not exist: name another."""


class UnsupportedError(ModelcError):
    """The request or the file is valid, and modelc cannot do it: choose another model or way."""


class BusyError(ModelcError):
    """A limit is reached or the model is still loading: try again later."""


class NetworkError(ModelcError):
    """Another machine could not be reached, or gave a wrong answer: check the connection, or try again later."""


class WriteError(ModelcError):
    """A file could not be written (disk full, no permission): make room or choose another place."""


class StoreError(ModelcError):
    """The store refuses: the operation would lose or overwrite something."""


@contextmanager
def located(path: str | PathLike[str], copy: str | PathLike[str] | None = None) -> Iterator[None]:
    """What is wrong with a file or cannot be done with it, raised inside, names `path`.

    Where it names a file already, that stays, unless it is `copy`, which was made of the file at `path`.
    """
    try:
        yield
    except (BadFileError, UnsupportedError) as error:
        if error.path is None or (copy is not None and error.path == fspath(copy)):
            error.path = fspath(path)
        raise


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The nearest of `candidates` as a question for `hint`, or an empty string when none is near.

    Args:
        name: What was asked for.
        candidates: The names that exist.

    Returns:
        For example `"did you mean 'llama'?"`; upper and lower case count as equal.
    """
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    nearest = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f"did you mean '{_one_line(by_folded[nearest[0]])}'?" if nearest else ""


def _one_line(text: str) -> str:
    """`text` cut to a sane length, with line breaks, control characters and stray bytes written as escapes."""
    if len(text) > MAX_FIELD_CHARS:
        text = f"{text[: MAX_FIELD_CHARS // 2]}…{text[-MAX_FIELD_CHARS // 4 :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
