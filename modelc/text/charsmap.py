"""SentencePiece's precompiled character map: a double-array trie from characters to their normal form.

Layout: u32 size of the trie in bytes; the trie, u32 units; the normal forms, UTF-8, each ended by a zero byte. A unit
holds a label in its low 8 bits (bit 31 set: a value instead), bit 8 when a value follows, bits 10 and up the offset to
the children, shifted by 8 more when bit 9 is set (the Darts-clone format). All little-endian.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import regex

from modelc.errors import BadFileError
from modelc.text.byte_alphabet import utf8

MAX_CLUSTER_BYTES = 5
CACHED_CLUSTERS = 1 << 14

_CLUSTER = regex.compile(r"\X")
_VALUE = 0x7FFFFFFF
_LABEL = 0x800000FF


class Charsmap:
    """The map, callable on text.

    Args:
        data: The map as SentencePiece stores it; empty for a map that changes nothing.
        where: What to name in errors.
        longest: Replace the longest match at each place, as SentencePiece itself does. Else a whole cluster of
            characters, or each character, by its shortest match, as tokenizers from a `tokenizer.json` do.

    Raises:
        BadFileError: The sizes in the map contradict its length.
    """

    def __init__(self, data: bytes, where: str, longest: bool = False) -> None:
        size = int.from_bytes(data[:4], "little")
        if data and (len(data) < 4 or size % 4 or 4 + size > len(data)):
            raise BadFileError("the character map is damaged", param=where, expected="a trie inside the map")
        self._units: list[int] = np.frombuffer(data, "<u4", size // 4, 4).tolist() if size else []
        self._forms = data[4 + size :]
        self._longest = longest
        self._cached = lru_cache(CACHED_CLUSTERS)(self._cluster)

    def __call__(self, text: str) -> str:
        """`text` with each cluster of characters, or else each character, in its normal form."""
        if not self._units:
            return text
        return "".join(map(self._cached, _CLUSTER.findall(text)))

    def _cluster(self, cluster: str) -> str:
        return self._by_longest(cluster) if self._longest else self._whole_or_by_character(cluster)

    def _whole_or_by_character(self, cluster: str) -> str:
        data = utf8(cluster)
        whole = self._shortest_form(data) if len(data) <= MAX_CLUSTER_BYTES else None
        if whole is not None:
            return whole
        forms = ((self._shortest_form(utf8(char)), char) for char in cluster)
        return "".join(char if form is None else form for form, char in forms)

    def _shortest_form(self, data: bytes) -> str | None:
        return next((form for _, form in self._forms_of(data)), None)

    def _by_longest(self, cluster: str) -> str:
        found: list[str] = []
        while cluster:
            data = utf8(cluster)
            # A match that ends inside of a character is none; without any, one character stays.
            whole = [(n, form) for n, form in self._forms_of(data) if n == len(data) or data[n] & 0xC0 != 0x80]
            length, form = whole[-1] if whole else (len(utf8(cluster[0])), cluster[0])
            found.append(form)
            cluster = data[length:].decode("utf-8")
        return "".join(found)

    def _forms_of(self, data: bytes) -> Iterator[tuple[int, str]]:
        """Each beginning of `data` that the trie has, shortest first: its length and its normal form."""
        units, at = self._units, _offset(self._units[0])
        for place, byte in enumerate(data):
            at ^= byte
            if byte == 0 or at >= len(units) or units[at] & _LABEL != byte:
                return
            has_value = units[at] >> 8 & 1
            at ^= _offset(units[at])
            if has_value and at < len(units):
                start = units[at] & _VALUE
                yield place + 1, self._forms[start : self._forms.find(b"\0", start)].decode("utf-8", "replace")


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def charsmap_of(text: str, where: str) -> Charsmap:
    """The map in base64, as a `tokenizer.json` has it.

    Raises:
        BadFileError: The text is not base64, or the map is damaged.
    """
    try:
        return Charsmap(base64.b64decode(text, validate=True), where)
    except (binascii.Error, ValueError) as error:
        raise BadFileError("the character map is not base64", param=where) from error
