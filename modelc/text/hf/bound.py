"""How many bytes of text one token of a `tokenizer.json` can stand for, where there is a bound.

With it, a text is known to be too long before it is tokenized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from modelc.text.byte_alphabet import bytes_to_chars
from modelc.text.hf.added_tokens import AddedToken
from modelc.text.hf.bpe_model import byte_ids
from modelc.text.hf.model import kind_of
from modelc.text.hf.part import Part

# How much shorter, in UTF-8, a normalizer makes a text at most. Forms of Unicode shrink single characters to a third
# (U+212A is K), and what composes to one character is at most three times as long as it.
_SHRINKS = {"NFC": 9, "NFD": 3, "NFKC": 9, "NFKD": 3, "Lowercase": 3, "Prepend": 1}
# Pre-tokenizers that leave nothing out.
_KEEPING = frozenset({"ByteLevel", "Metaspace", "Split", "Digits", "Punctuation"})
_ALL_BYTES = bytes_to_chars(bytes(range(256)))


def longest_token_bytes(
    root: Part, vocab: Mapping[str, int], added: Iterable[AddedToken], byte_level: bool
) -> int | None:
    """Most bytes of text (UTF-8) that one token can stand for; None where there is no bound.

    Args:
        root: The whole `tokenizer.json`.
        vocab: Id of each token of the model.
        added: What stands beside it.
        byte_level: Whether the vocabulary is written in the byte alphabet.
    """
    added = list(added)
    model = root.part("model")
    if kind_of(model) != "BPE" or any(token.lstrip or token.rstrip for token in added):
        return None
    special = {token.id for token in added if token.special}  # never made from words
    if byte_level and any(vocab.get(char) in (None, *special) for char in _ALL_BYTES):
        return None
    if not byte_level and (byte_ids(vocab) is None or not model.flag("byte_fallback", False)):
        return None
    shrinks = [_shrink_of(step) for step in _steps(root, "normalizer", "normalizers")]
    keeps = [_leaves_nothing_out(step) for step in _steps(root, "pre_tokenizer", "pretokenizers")]
    known = [shrink for shrink in shrinks if shrink is not None]
    if len(known) < len(shrinks) or not all(keeps):
        return None
    of_model = max(len(text) if byte_level else len(text.encode("utf-8")) for text in vocab)
    return prod(known) * max([of_model, *(len(token.text.encode("utf-8")) for token in added)])


def _steps(root: Part, name: str, inner: str) -> list[Part]:
    if not root.has(name):
        return []
    part = root.part(name)
    return part.parts(inner) if part.kind == "Sequence" else [part]


def _shrink_of(step: Part) -> int | None:
    if step.kind != "Replace":
        return _SHRINKS.get(step.kind)
    literal, content = step.part("pattern").fields.get("String"), step.text("content")
    if not isinstance(literal, str) or not content:
        return None
    return -(-len(literal.encode("utf-8", "surrogatepass")) // len(content.encode("utf-8")))


def _leaves_nothing_out(step: Part) -> bool:
    return step.kind in _KEEPING and step.fields.get("behavior") != "Removed"
