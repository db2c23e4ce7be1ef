"""Normalizers: what is done to text before it is cut into words."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial

import regex

from modelc.text.charsmap import charsmap_of
from modelc.text.hf.part import Part

Normalizer = Callable[[str], str]

_MARKS = regex.compile(r"\p{M}+")
_NONSPACING = regex.compile(r"\p{Mn}+")
_NOT_TEXT = regex.compile(r"(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]")  # unassigned characters stay
_SPACE = regex.compile(r"\p{White_Space}")
_IDEOGRAPH = regex.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
_NMT_GONE = regex.compile("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]+")
_NMT_SPACE = regex.compile("[\t\n\x0c\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]")


def normalizer_of(part: Part | None) -> Normalizer | None:
    """The normalizer that `normalizer` describes; None for none.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: A type that modelc does not have; the error names it.
    """
    return None if part is None else part.choose("normalizer", _TYPES)


def lower(text: str) -> str:
    """Lower case of each character by itself: no final form of sigma."""
    return text.replace("\u03a3", "\u03c3").lower()


def bert(
    text: str, *, clean: bool = True, chinese: bool = True, strip_accents: bool = True, lowercase: bool = True
) -> str:
    """What BERT (2018) does to text: control characters out, blanks around ideographs, accents off, lower case."""
    if clean:
        text = _SPACE.sub(" ", _NOT_TEXT.sub("", text))
    if chinese:
        text = _IDEOGRAPH.sub(r" \1 ", text)
    if strip_accents:
        text = _NONSPACING.sub("", unicodedata.normalize("NFD", text))
    return lower(text) if lowercase else text


def _unicode(part: Part) -> Normalizer:
    form = part.kind

    def normalize(text: str) -> str:
        return unicodedata.normalize(form, text)  # type: ignore[arg-type] # one of the four, by the table

    return normalize


def _bert(part: Part) -> Normalizer:
    lowercase = part.flag("lowercase", True)
    return partial(
        bert,
        clean=part.flag("clean_text", True),
        chinese=part.flag("handle_chinese_chars", True),
        strip_accents=part.flag("strip_accents", lowercase),
        lowercase=lowercase,
    )


def _replace(part: Part) -> Normalizer:
    content = part.text("content")
    literal = part.part("pattern").fields.get("String")
    if isinstance(literal, str) and literal:
        return lambda text: text.replace(literal, content)
    pattern = part.pattern()
    return lambda text: pattern.replace(text, content)


def _prepend(part: Part) -> Normalizer:
    start = part.text("prepend")
    return lambda text: start + text if text else text


def _strip(part: Part) -> Normalizer:
    left, right = part.flag("strip_left", True), part.flag("strip_right", True)
    ends = [r"\A\p{White_Space}+"] * left + [r"(?<!\p{White_Space})\p{White_Space}+\Z"] * right
    pattern = regex.compile("|".join(ends)) if ends else None
    return lambda text: pattern.sub("", text) if pattern else text


def _strip_accents(_: Part) -> Normalizer:
    return lambda text: _MARKS.sub("", text)


def _nmt(_: Part) -> Normalizer:
    return lambda text: _NMT_SPACE.sub(" ", _NMT_GONE.sub("", text))


def _lowercase(_: Part) -> Normalizer:
    return lower


def _precompiled(part: Part) -> Normalizer:
    return charsmap_of(part.text("precompiled_charsmap", ""), part.where)


def _sequence(part: Part) -> Normalizer:
    steps = [step.choose("normalizer", _TYPES) for step in part.parts("normalizers")]

    def normalize(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return normalize


_TYPES: dict[str, Callable[[Part], Normalizer]] = {
    "NFC": _unicode,
    "NFD": _unicode,
    "NFKC": _unicode,
    "NFKD": _unicode,
    "Lowercase": _lowercase,
    "StripAccents": _strip_accents,
    "Strip": _strip,
    "BertNormalizer": _bert,
    "Replace": _replace,
    "Prepend": _prepend,
    "Precompiled": _precompiled,
    "Nmt": _nmt,
    "Sequence": _sequence,
}
