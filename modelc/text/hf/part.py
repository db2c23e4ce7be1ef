"""One object of a `tokenizer.json`, read field by field with a clear error for what has the wrong type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import regex

from modelc.errors import BadFileError, UnsupportedError
from modelc.text.hf.pattern import Pattern

MAX_DEPTH = 16

_T = TypeVar("_T")


class Part:
    """A JSON object and where it stands.

    Args:
        fields: The object; anything else is a `BadFileError`.
        where: Its place, as in `pre_tokenizer.pretokenizers[1]`.
        depth: How many parts it lies inside of.
    """

    def __init__(self, fields: object, where: str, depth: int = 0) -> None:
        if not isinstance(fields, Mapping):
            raise BadFileError("a part of tokenizer.json has the wrong type", param=where, expected="an object")
        if depth > MAX_DEPTH:
            raise BadFileError("tokenizer.json is nested too deeply", param=where, expected=f"{MAX_DEPTH} levels")
        self.fields = fields
        self.where = where
        self.depth = depth

    @property
    def kind(self) -> str:
        """The part's `type`."""
        return self.text("type")

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.fields.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string, without lone surrogates."""
        text = self._typed(name, str, default)
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise self.wrong(name, "text in UTF-8")
        return text

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false."""
        return self._typed(name, bool, default)

    def number(self, name: str, default: int | None = None) -> int:
        """An integer."""
        return self._typed(name, int, default)

    def items(self, name: str) -> list[Any]:
        """A list."""
        found: list[Any] = self._typed(name, list, None)
        return found

    def part(self, name: str) -> Part:
        """An object."""
        return Part(self.fields.get(name), f"{self.where}.{name}".lstrip("."), self.depth + 1)

    def parts(self, name: str) -> list[Part]:
        """A list of objects."""
        where = f"{self.where}.{name}".lstrip(".")
        return [Part(item, f"{where}[{at}]", self.depth + 1) for at, item in enumerate(self.items(name))]

    def pattern(self, name: str = "pattern") -> Pattern:
        """A compiled pattern: `{"String": …}` as it is, or `{"Regex": …}`."""
        part = self.part(name)
        if part.has("String"):
            return Pattern(regex.escape(part.text("String")), part.where)
        return Pattern(part.text("Regex"), part.where)

    def choose(self, what: str, table: Mapping[str, Callable[[Part], _T]]) -> _T:
        """Build with the entry of `table` for this part's type.

        Raises:
            UnsupportedError: The table has no such type.
        """
        build = table.get(self.kind)
        if build is None:
            raise UnsupportedError(
                f"this {what} is not supported", param=self.where, got=self.kind, expected=" ".join(table)
            )
        return build(self)

    def wrong(self, name: str, expected: object) -> BadFileError:
        """The error for a field that is not as it must be."""
        where = f"{self.where}.{name}".lstrip(".")
        return BadFileError("a part of tokenizer.json is wrong", param=where, expected=expected)

    def _typed(self, name: str, kind: type[_T], default: _T | None) -> _T:
        value = self.fields.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not kind:
            raise self.wrong(name, {str: "text", bool: "true or false", int: "an integer", list: "a list"}.get(kind))
        return value
