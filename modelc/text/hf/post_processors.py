"""Post-processors: the special tokens that are put around one text."""

from __future__ import annotations

from collections.abc import Callable

from modelc.errors import UnsupportedError
from modelc.text.hf.part import Part

Frame = tuple[tuple[int, ...], tuple[int, ...]]
"""Ids before and after a text."""

_NOTHING: Frame = ((), ())


def frame_of(part: Part | None) -> Frame:
    """What `post_processor` puts around a text.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: A type that modelc does not have, or a template that does not hold the text just once.
    """
    return _NOTHING if part is None else part.choose("post-processor", _TYPES)


def _template(part: Part) -> Frame:
    special = part.part("special_tokens")
    before: list[int] = []
    after: list[int] = []
    texts = 0
    for piece in part.parts("single"):
        if piece.has("Sequence"):
            texts += 1
            continue
        token = special.part(piece.part("SpecialToken").text("id"))
        ids = token.items("ids")
        if set(map(type, ids)) - {int}:
            raise token.wrong("ids", "integers")
        (after if texts else before).extend(ids)
    if texts != 1:
        raise UnsupportedError(
            "this post-processor is not supported", param=f"{part.where}.single", expected="the text just once"
        )
    return tuple(before), tuple(after)


def _around(part: Part) -> Frame:
    return (_named_id(part, "cls"),), (_named_id(part, "sep"),)


def _named_id(part: Part, name: str) -> int:
    pair = part.items(name)
    if len(pair) != 2 or type(pair[1]) is not int:
        raise part.wrong(name, "a text and an id")
    return pair[1]


def _sequence(part: Part) -> Frame:
    before, after = _NOTHING
    for step in part.parts("processors"):
        outer = step.choose("post-processor", _TYPES)
        before, after = outer[0] + before, after + outer[1]
    return before, after


def _nothing(_: Part) -> Frame:
    return _NOTHING


_TYPES: dict[str, Callable[[Part], Frame]] = {
    "TemplateProcessing": _template,
    "BertProcessing": _around,
    "RobertaProcessing": _around,
    "ByteLevel": _nothing,
    "Sequence": _sequence,
}
