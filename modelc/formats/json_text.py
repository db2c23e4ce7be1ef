"""JSON inside and beside weights files: bounded before it is parsed, and no key twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from modelc.errors import BadFileError
from modelc.formats.mapping import map_file

# Parsing makes Python objects of 8 to 230 bytes each, so that their number is bounded before it begins. The largest
# vocabularies with their merges have 2 million.
MAX_VALUES = 1 << 23
MAX_BYTES = 1 << 27

_HINT = "the file is damaged or not complete: download it again"


def parse(text: bytes, path: Path, what: str, *, offset: int | None = None) -> Any:
    """The value that JSON text stands for.

    Args:
        text: UTF-8.
        path: The file it is from, for messages.
        what: What it is, for messages ("the header").
        offset: Where it begins in the file, for messages.

    Returns:
        A value of the types of `json.loads`.

    Raises:
        BadFileError: Not JSON, a key that appears twice in an object, or more values or bytes than is sane.
    """
    for counted, most, n in (
        ("bytes", MAX_BYTES, len(text)),
        ("values", MAX_VALUES, text.count(b",") + text.count(b"[") + text.count(b"{")),
    ):
        if n > most:
            expected = f"at most {most} {counted}"
            raise BadFileError(f"{what} is too long", path=path, offset=offset, expected=expected, got=n, hint=_HINT)
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_object)
    except _TwiceError as error:
        raise BadFileError(
            f"a key appears twice in {what}", path=path, offset=offset, got=repr(error.args[0]), hint=_HINT
        ) from None
    except (ValueError, RecursionError) as error:
        got = f"{type(error).__name__} {error}"
        raise BadFileError(
            f"{what} is not JSON", path=path, offset=offset, expected="JSON", got=got, hint=_HINT
        ) from None


def read_json(path: Path, kind: type[dict[str, Any]] | type[list[Any]] = dict) -> Any:
    """The object, or with `kind` the list, in a JSON file.

    Raises:
        NotFoundError: No such file.
        BadFileError: Anything else than that in the file.
    """
    value = parse(map_file(path)[:], path, "the file")
    if type(value) is not kind:
        expected = "an object" if kind is dict else "a list"
        raise BadFileError("the file has another form", path=path, expected=expected, got=type(value).__name__)
    return value


class _TwiceError(Exception):
    """A key that appears twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(key)
            seen.add(key)
    return found
