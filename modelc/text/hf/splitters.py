"""Pre-tokenizers: how a normalized text is cut into words, each of which the model sees alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import regex

from modelc.text.byte_alphabet import bytes_to_chars
from modelc.text.hf.part import Part
from modelc.text.hf.pattern import Pattern

Splitter = Callable[[str, bool], list[str]]
"""Words of a text; the flag says whether it is the beginning of the whole text."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d"
_PUNCTUATION = r"[\p{P}!-/:-@\[-`{-~]"
_BLANK = r"\p{White_Space}"


@dataclass(frozen=True, slots=True)
class Words:
    """The whole way from a text to the model's words.

    Attributes:
        splitters: Applied one after the other, each to every word of the one before.
        byte_level: Words are then written in the byte alphabet.
    """

    splitters: tuple[Splitter, ...] = ()
    byte_level: bool = False

    def split(self, text: str, first: bool) -> list[str]:
        """Cut `text`; what no word covers is gone."""
        if len(self.splitters) == 1:
            return self.splitters[0](text, first)
        words = [text]
        for splitter in self.splitters:
            cut: list[str] = []
            at_start = first
            for word in words:
                cut += splitter(word, at_start)
                at_start = False
            # A first word that came later in the text, behind what is gone, does not begin it.
            first = first and bool(cut) and words[0].startswith(cut[0])
            words = cut
        return words

    def spell(self, word: str) -> str:
        """The word in the characters of the vocabulary."""
        return bytes_to_chars(word.encode("utf-8")) if self.byte_level else word


def words_of(part: Part | None) -> Words:
    """What `pre_tokenizer` describes.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: A type that modelc does not have, or bytes are asked for before the last step.
    """
    steps = [] if part is None else _flat(part)
    for step in steps[:-1]:
        if step.kind == "ByteLevel":
            raise step.wrong("type", "ByteLevel as the last pre-tokenizer")
    splitters = tuple(step.choose("pre-tokenizer", _TYPES) for step in steps)
    return Words(splitters, bool(steps) and steps[-1].kind == "ByteLevel")


def _flat(part: Part) -> list[Part]:
    if part.kind != "Sequence":
        return [part]
    return [step for inner in part.parts("pretokenizers") for step in _flat(inner)]


def _cutter(pattern: Pattern, behavior: str, invert: bool, part: Part) -> Splitter:
    """Cut at the matches of a pattern, and do with the matches as `behavior` says."""
    if behavior == "Isolated":
        return lambda text, _: pattern.cut(text)
    join = _BEHAVIORS.get(behavior)
    if join is None:
        raise part.wrong("behavior", f"Isolated {' '.join(_BEHAVIORS)}")
    return lambda text, _: join([(piece, matches is not invert) for piece, matches in pattern.pieces(text)])


def _removed(pieces: list[tuple[str, bool]]) -> list[str]:
    return [text for text, matches in pieces if not matches]


def _contiguous(pieces: list[tuple[str, bool]]) -> list[str]:
    return ["".join(text for text, _ in run) for _, run in groupby(pieces, key=itemgetter(1))]


def _with_previous(pieces: list[tuple[str, bool]]) -> list[str]:
    words: list[str] = []
    before = False
    for text, matches in pieces:
        if matches and not before and words:
            words[-1] += text
        else:
            words.append(text)
        before = matches
    return words


def _with_next(pieces: list[tuple[str, bool]]) -> list[str]:
    words: list[str] = []
    before = False
    for text, matches in reversed(pieces):
        if matches and not before and words:
            words[-1] = text + words[-1]
        else:
            words.append(text)
        before = matches
    return words[::-1]


_BEHAVIORS = {
    "Removed": _removed,
    "Contiguous": _contiguous,
    "MergedWithPrevious": _with_previous,
    "MergedWithNext": _with_next,
}


def _split(part: Part) -> Splitter:
    return _cutter(part.pattern(), part.text("behavior"), part.flag("invert", False), part)


def _punctuation(part: Part) -> Splitter:
    return _cutter(Pattern(_PUNCTUATION, part.where), part.text("behavior", "Isolated"), False, part)


def _digits(part: Part) -> Splitter:
    pattern = r"\p{N}" if part.flag("individual_digits", False) else r"\p{N}+"
    return _cutter(Pattern(pattern, part.where), "Isolated", False, part)


def _delimiter(part: Part) -> Splitter:
    return _cutter(Pattern(regex.escape(part.text("delimiter")), part.where), "Removed", False, part)


def _whitespace(_: Part) -> Splitter:
    pattern = regex.compile(rf"[{_WORD}]+|[^{_WORD}{_BLANK}]+")
    return lambda text, _: pattern.findall(text)


def _whitespace_split(_: Part) -> Splitter:
    pattern = regex.compile(rf"[^{_BLANK}]+")
    return lambda text, _: pattern.findall(text)


def _bert(_: Part) -> Splitter:
    return bert_words


_BERT_WORD = regex.compile(rf"{_PUNCTUATION}|(?:(?!{_PUNCTUATION})[^{_BLANK}])+")


def bert_words(text: str, _first: bool = True) -> list[str]:
    """Words between white space, each punctuation character by itself (BERT, 2018)."""
    words: list[str] = _BERT_WORD.findall(text)
    return words


def _byte_level(part: Part) -> Splitter:
    add_space = part.flag("add_prefix_space", True)
    pattern = regex.compile(_GPT2) if part.flag("use_regex", True) else None

    def split(text: str, _: bool) -> list[str]:
        if add_space and not text.startswith(" "):
            text = f" {text}"
        return pattern.findall(text) if pattern else [text]

    return split


def _metaspace(part: Part) -> Splitter:
    mark = part.text("replacement", "▁")
    if len(mark) != 1:
        raise part.wrong("replacement", "one character")
    # Early files say it with a flag.
    scheme = part.text("prepend_scheme", "always" if part.flag("add_prefix_space", True) else "never")
    word = regex.compile(rf"{regex.escape(mark)}?[^{regex.escape(mark)}]+|{regex.escape(mark)}")
    cuts = part.flag("split", True)

    def split(text: str, first: bool) -> list[str]:
        text = text.replace(" ", mark)
        if (scheme == "always" or (scheme == "first" and first)) and not text.startswith(mark):
            text = mark + text
        return word.findall(text) if cuts else [text]

    return split


_TYPES: dict[str, Callable[[Part], Splitter]] = {
    "ByteLevel": _byte_level,
    "Split": _split,
    "Metaspace": _metaspace,
    "BertPreTokenizer": _bert,
    "Whitespace": _whitespace,
    "WhitespaceSplit": _whitespace_split,
    "Digits": _digits,
    "Punctuation": _punctuation,
    "CharDelimiterSplit": _delimiter,
}
