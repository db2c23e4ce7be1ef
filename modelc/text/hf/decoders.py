"""Decoders: the bytes that each token adds to a text.

A token's bytes depend on the token, and on whether it is the first; so a text can be decoded a token at a time, and
comes out the same. Bytes that are not UTF-8 stay as they are until all tokens are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from modelc.errors import UnsupportedError
from modelc.text.byte_alphabet import chars_to_bytes, utf8
from modelc.text.hf.part import Part

Step = Callable[[str, bool], str]
"""A token's text made into other text; the flag says whether the token is the first."""

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
_CLEANED = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " do not", " 's", " 've", " 're")
_CLEAN = (".", "?", "!", ",", "'", "n't", "'m", " don't", "'s", "'ve", "'re")


@dataclass(frozen=True, slots=True)
class Decoder:
    """From tokens' texts to bytes.

    Attributes:
        steps: Done to each token's text, in order.
        byte_fallback: Index of the step before which `<0x41>` becomes the byte; None for never.
        byte_level: The text that comes out of the steps is in the byte alphabet.
        strip_start: Taken from the beginning of the whole text, once.
    """

    steps: tuple[Step, ...] = ()
    byte_fallback: int | None = None
    byte_level: bool = False
    strip_start: bytes = b""

    def token_bytes(self, text: str, first: bool) -> bytes:
        """Bytes that the token `text` adds; `first` for the first of a text."""
        data = self._spelled(text, first)
        return data.removeprefix(self.strip_start) if first else data

    def _spelled(self, text: str, first: bool) -> bytes:
        for at, step in enumerate(self.steps):
            if at == self.byte_fallback and (byte := _BYTE.fullmatch(text)):
                return bytes.fromhex(byte[1])
            text = step(text, first)
        if self.byte_fallback == len(self.steps) and (byte := _BYTE.fullmatch(text)):
            return bytes.fromhex(byte[1])
        return chars_to_bytes(text) if self.byte_level else utf8(text)


def decoder_of(part: Part | None) -> Decoder:
    """What `decoder` describes; without one, tokens are joined by blanks.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: A type that modelc does not have, or one whose place makes a token's text depend on others.
    """
    if part is None:
        return Decoder((lambda text, first: text if first else f" {text}",))
    steps: list[Step] = []
    byte_fallback: int | None = None
    byte_level = fused = False
    strip_start = ""
    for step in _flat(part):
        if byte_level or strip_start:
            raise _misplaced(step)
        if step.kind == "Fuse":
            fused = True
        elif step.kind == "ByteFallback":
            byte_fallback = len(steps)
        elif step.kind == "ByteLevel":
            byte_level = True
        elif fused and step.kind == "Strip":
            if step.number("stop", 0) or step.number("start", 0) > 1:
                raise _misplaced(step)
            strip_start = step.text("content") * step.number("start", 0)
        elif fused and not _one_character(step):
            raise _misplaced(step)
        else:
            steps.append(step.choose("decoder", _TYPES))
    return Decoder(tuple(steps), byte_fallback, byte_level, utf8(strip_start))


def _flat(part: Part) -> list[Part]:
    if part.kind != "Sequence":
        return [part]
    return [step for inner in part.parts("decoders") for step in _flat(inner)]


def _misplaced(part: Part) -> UnsupportedError:
    return UnsupportedError("this decoder is not supported at this place", param=part.where, got=part.kind)


def _one_character(part: Part) -> bool:
    """Whether the step changes each character by itself, so that it does not matter where tokens end."""
    literal = part.part("pattern").fields.get("String") if part.kind == "Replace" else None
    return isinstance(literal, str) and len(literal) == 1


def _replace(part: Part) -> Step:
    content = part.text("content")
    literal = part.part("pattern").fields.get("String")
    if isinstance(literal, str) and literal:
        return lambda text, _: text.replace(literal, content)
    pattern = part.pattern()
    return lambda text, _: pattern.replace(text, content)


def _strip(part: Part) -> Step:
    content, start, stop = part.text("content"), part.number("start", 0), part.number("stop", 0)
    if len(content) != 1 or start < 0 or stop < 0:
        raise part.wrong("content", "one character, taken off 0 times or more")

    def strip(text: str, _: bool) -> str:
        left = min(start, len(text) - len(text.lstrip(content)))
        right = min(stop, len(text) - len(text.rstrip(content)), len(text) - left)
        return text[left : len(text) - right]

    return strip


def _metaspace(part: Part) -> Step:
    mark = part.text("replacement", "▁")
    keeps = part.text("prepend_scheme", "always" if part.flag("add_prefix_space", True) else "never") == "never"
    return lambda text, first: text.replace(mark, "" if first and not keeps else " ")


def _word_piece(part: Part) -> Step:
    prefix, cleans = part.text("prefix", "##"), part.flag("cleanup", True)

    def join(text: str, first: bool) -> str:
        if not first:
            text = text[len(prefix) :] if text.startswith(prefix) else f" {text}"
        if cleans:
            for untidy, tidy in zip(_CLEANED, _CLEAN, strict=True):
                text = text.replace(untidy, tidy)
        return text

    return join


_TYPES: dict[str, Callable[[Part], Step]] = {
    "Replace": _replace,
    "Strip": _strip,
    "Metaspace": _metaspace,
    "WordPiece": _word_piece,
}
