"""One tool call, a JSON object with a name and arguments, read while a model writes it."""

from __future__ import annotations

import json
from collections.abc import Container

ARGUMENT_KEYS = ("arguments", "parameters")
KEYS = ("name", *ARGUMENT_KEYS, "type", "id")


class CallReader:
    """Reads `{"name": …, "arguments": {…}}` character by character.

    Attributes:
        name: of the tool, None until it is known.
        is_done: the object has ended.
        is_wrong: this is no call of one of the tools.

    Args:
        names: of the tools.
        name: of this call, where it was written before, and the arguments come alone.
    """

    def __init__(self, names: Container[str], name: str | None = None) -> None:
        self.name = name
        self._raw: list[str] = []
        self.is_done = False
        self.is_wrong = False
        self._names = names
        self._has_name = name is not None
        self._depth = 1 if self._has_name else 0
        self._in_string = self._escaped = False
        self._key = ARGUMENT_KEYS[0] if self._has_name else None  # at the first level, once its colon is there
        self._value: list[str] = []  # text of the key or of the value being read
        self._arguments: list[str] = []
        self._given = 0  # characters of the arguments that were taken

    @property
    def raw(self) -> str:
        """All text so far."""
        return "".join(self._raw)

    def push(self, char: str) -> None:
        """Read a character."""
        self._raw.append(char)
        if self._in_string:
            self._in_string = self._escaped or char != '"'
            self._escaped = char == "\\" and not self._escaped
            self._keep(char)
        elif char in "{[":
            self._depth += 1
            if self._depth > 1:
                self._keep(char)
        elif char in "}]":
            self._depth -= 1
            if self._depth > 0:
                self._keep(char, closes=self._depth == 1)
            if self._depth == int(self._has_name):
                self._end()
        elif char == ":" and self._depth == 1 and self._key is None:
            self._key = _string("".join(self._value))
            self._value = []
            self.is_wrong = self.name is None and self._key not in KEYS
        elif char == "," and self._depth == 1:
            self._end_value()
        else:
            self._in_string = char == '"'
            self._keep(char)

    def take_arguments(self) -> str:
        """What is new of the arguments' JSON text; nothing before the name is known."""
        if self.name is None:
            return ""
        new = "".join(self._arguments[self._given :])
        self._given = len(self._arguments)
        return new

    def _keep(self, char: str, closes: bool = False) -> None:
        self._value.append(char)
        if self._key in ARGUMENT_KEYS and (self._depth > 1 or closes):
            self._arguments.append(char)

    def _end_value(self) -> None:
        value = "".join(self._value).strip()
        if self._key == "name" and self.name is None:
            self.name = _string(value)
            self.is_wrong = self.name is None or self.name not in self._names
        elif self._key in ARGUMENT_KEYS and not self._arguments:
            text = _string(value)  # some models write the object as a string of JSON
            self._arguments = list(value if text is None else text)
        self._key, self._value = None, []

    def _end(self) -> None:
        self._end_value()
        self.is_done = True
        self.is_wrong = self.is_wrong or self.name is None
        if self._arguments in ([], list("null")):
            self._arguments = list("{}")


def _string(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
