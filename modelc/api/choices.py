"""What a field of a request may be set to, where that is one of a few words; for errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


def choices_at(shape: type, path: str) -> list[str]:
    """The words that a field takes.

    Args:
        shape: The struct of the request's body.
        path: The field in it, as `tools[0].type`.

    Returns:
        Them in order; nothing where the field takes other values.
    """
    from msgspec import inspect  # late: only errors need it

    def alternatives(kind: Any) -> Iterator[Any]:
        """The types that a type stands for."""
        match kind:
            case inspect.Metadata():
                yield from alternatives(kind.type)
            case inspect.UnionType():
                for each in kind.types:
                    yield from alternatives(each)
            case _:
                yield kind

    def inside(kind: Any, step: str) -> Iterator[Any]:
        match kind:
            case inspect.StructType():
                yield from (field.type for field in kind.fields if field.encode_name == step)
            case inspect.ListType() if step.isdigit():
                yield kind.item_type

    kinds = list(alternatives(inspect.type_info(shape)))
    for step in re.findall(r"\w+", path):
        kinds = [each for kind in kinds for found in inside(kind, step) for each in alternatives(found)]
    return [str(value) for kind in kinds if isinstance(kind, inspect.LiteralType) for value in kind.values]
