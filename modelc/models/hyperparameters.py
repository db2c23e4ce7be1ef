"""Checked access to a source's hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelc.errors import BadFileError


class Hyperparameters:
    """Typed look-ups in metadata, each checked; a message names the key.

    Args:
        metadata: The source's keys.
        prefix: Put before each key, for example `llama.`.
    """

    def __init__(self, metadata: Mapping[str, Any], prefix: str = "") -> None:
        self._metadata = metadata
        self._prefix = prefix

    def has(self, key: str) -> bool:
        """Whether the key is there, and not null."""
        return self._metadata.get(self._prefix + key) is not None

    def integer(self, key: str, default: int | None = None, *, low: int = 1, high: int = 1 << 31) -> int:
        """An integer in low .. high."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(key, f"an integer from {low} to {high}", value)
        return value

    def number(self, key: str, default: float | None = None, *, low: float = 0.0, high: float = 1e12) -> float:
        """A finite number in low .. high."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._wrong(key, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._metadata.get(self._prefix + key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def texts(self, key: str) -> list[str]:
        """A list of strings."""
        values = self._get(key, None)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self._wrong(key, "a list of strings", values)
        return values

    def numbers(self, key: str, *, low: float = 0.0, high: float = 1e12) -> tuple[float, ...]:
        """A list of finite numbers in low .. high."""
        values = self._get(key, None)
        expected = f"a list of numbers from {low:g} to {high:g}"
        if not isinstance(values, list):
            raise self._wrong(key, expected, values)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise self._wrong(key, expected, value)
        return tuple(map(float, values))

    def section(self, key: str) -> Hyperparameters:
        """The object at `key`; empty when it is absent."""
        value = self._metadata.get(self._prefix + key) or {}
        if not isinstance(value, dict):
            raise self._wrong(key, "an object", value)
        return Hyperparameters(value)

    def _get(self, key: str, default: Any) -> Any:
        value = self._metadata.get(self._prefix + key)
        value = default if value is None else value
        if value is None:
            raise BadFileError(
                "hyperparameter missing", expected=f"metadata key {self._prefix + key}", hint="convert the model again"
            )
        return value

    def _wrong(self, key: str, expected: str, value: Any) -> BadFileError:
        return BadFileError(f"metadata key {self._prefix + key}", expected=expected, got=repr(value)[:80])
