"""A tokenizer built from `tokenizer.json`, in the file's own order of work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from modelc.errors import BadFileError, NotFoundError
from modelc.text.byte_alphabet import utf8
from modelc.text.ends import known_ends
from modelc.text.hf.added_tokens import AddedTokens, added_tokens_of
from modelc.text.hf.bound import longest_token_bytes
from modelc.text.hf.decoders import decoder_of
from modelc.text.hf.model import Context, model_of, vocab_of
from modelc.text.hf.normalizers import normalizer_of
from modelc.text.hf.part import Part
from modelc.text.hf.post_processors import frame_of
from modelc.text.hf.special_ids import end_ids, named_id
from modelc.text.hf.splitters import words_of
from modelc.text.surrogates import without_surrogates

_BESIDE = ("tokenizer_config", "generation_config", "config")


class HfTokenizer:
    """Text to token ids and back; safe to share between threads.

    Args:
        metadata: `tokenizer` is the parsed `tokenizer.json`; `tokenizer_config`, `generation_config` and `config`, the
            files of those names, may be there too.

    Attributes:
        vocab_size: One more than the highest id.
        bos_id: Beginning of text, or None.
        eos_id: End of text, or None.
        pad_id: Padding, or None.
        eog_ids: Every token that ends a generation.
        special_ids: Control tokens: recognised in text on request only.
        special_texts: Their texts.
        longest_token_bytes: Most bytes of text that one token can stand for; None where normalizer, pre-tokenizer or
            model may shorten text without a bound.
        add_bos: `encode` puts BOS in front.
        before: What `encode` puts in front of a text.
        after: What it puts behind.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: A part of a type that modelc does not have; the error names it.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        root = Part(metadata.get("tokenizer"), "")
        added = added_tokens_of(root)
        vocab = vocab_of(root.part("model"))
        self.special_ids = frozenset(token.id for token in added if token.special)
        self.special_texts = frozenset(token.text for token in added if token.special)
        normalizer = normalizer_of(_optional(root, "normalizer"))
        self._all_added = AddedTokens(added, normalizer)
        self._ordinary_added = AddedTokens((token for token in added if not token.special), normalizer)
        self._words = words_of(_optional(root, "pre_tokenizer"))
        self._model = model_of(root.part("model"), Context(vocab, self.special_ids, self._words))
        self.longest_token_bytes = longest_token_bytes(root, vocab, added, self._words.byte_level)
        self.before, self.after = frame_of(_optional(root, "post_processor"))
        self._decoder = decoder_of(_optional(root, "decoder"))

        ids = vocab | {token.text: token.id for token in added}
        self._texts = {token: text for text, token in ids.items()}
        # Text of each token as the decoder sees it: in normal form where it is looked for in that form.
        normal = {token.id: normalizer(token.text) for token in added if token.normalized} if normalizer else {}
        self._spelled = self._texts | normal
        self.vocab_size = max(self._texts, default=-1) + 1
        unknown = set(self.before + self.after) - self._texts.keys()
        if unknown:
            raise BadFileError("the post-processor adds a token that does not exist", got=min(unknown))
        self.bos_id, self.eos_id, self.pad_id = (named_id(name, metadata, ids) for name in ("bos", "eos", "pad"))
        self.eog_ids = frozenset(end_ids(metadata, ids) | known_ends((token.id, token.text) for token in added))
        self.add_bos = self.bos_id is not None and self.before[:1] == (self.bos_id,)
        self._token_bytes: dict[int, bytes] = {}

    @classmethod
    def from_file(cls, source: str | Path | Mapping[str, Any]) -> HfTokenizer:
        """Build from a folder, a `tokenizer.json` (files beside it are read too), or its parsed content.

        Raises:
            NotFoundError: There is no such file.
            BadFileError: It is not JSON, or a field is missing or wrong.
            UnsupportedError: A part of a type that modelc does not have.
        """
        if isinstance(source, Mapping):
            return cls(source if "tokenizer" in source else {"tokenizer": source})
        path = Path(source)
        path = path / "tokenizer.json" if path.is_dir() else path
        if not path.is_file():
            raise NotFoundError("there is no such tokenizer", path=path, expected="a tokenizer.json")
        beside = {name: path.with_name(f"{name}.json") for name in _BESIDE}
        found = {name: _read_json(file) for name, file in beside.items() if file.is_file()}
        return cls({**found, "tokenizer": _read_json(path)})

    @property
    def bos_token(self) -> str:
        """Text of BOS, empty when there is none."""
        return "" if self.bos_id is None else self._texts[self.bos_id]

    @property
    def eos_token(self) -> str:
        """Text of EOS, empty when there is none."""
        return "" if self.eos_id is None else self._texts[self.eos_id]

    def encode(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of `text`.

        Args:
            text: Any text; a lone surrogate counts as U+FFFD.
            add_special: Add the tokens that the post-processor puts around a text.
            parse_special: Recognise control tokens written in the text. Other added tokens always are.
        """
        ids = self.encode_parts([(text, parse_special)])
        return [*self.before, *ids, *self.after] if add_special else ids

    def encode_parts(self, parts: Iterable[tuple[str, bool]]) -> list[int]:
        """Token ids of one text in parts, none added; the flags: control tokens are recognised in the part."""
        ids: list[int] = []
        encode_word = self._model.encode
        for text, parse_special in parts:
            added = self._all_added if parse_special else self._ordinary_added
            begins = not ids
            for piece, first in added.split(without_surrogates(text)):
                if isinstance(piece, int):
                    ids.append(piece)
                else:
                    ids.extend(chain.from_iterable(map(encode_word, self._words.split(piece, first and begins))))
        return ids

    def least_tokens(self, text: str) -> int:
        """A number of tokens that `text` has at least, without encoding it; 0 where there is no bound."""
        longest = self.longest_token_bytes
        return len(utf8(text)) // longest if longest else 0

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """Text of `ids`, with U+FFFD for what is not UTF-8 once all is joined.

        Args:
            ids: Token ids; those outside the vocabulary are skipped.
            skip_special: Leave control tokens out.
        """
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """Bytes of `ids`; see `decode`."""
        known = [token for token in ids if token in self._texts and not (skip_special and token in self.special_ids)]
        return self.first_token_bytes(known[0]) + b"".join(map(self.token_bytes, known[1:])) if known else b""

    def token_bytes(self, token: int) -> bytes:
        """Bytes that a token adds to a text that has begun; none for an unknown id."""
        data = self._token_bytes.get(token)
        if data is None and token in self._texts:
            data = self._token_bytes[token] = self._decoder.token_bytes(self._spelled[token], False)
        return data or b""

    def first_token_bytes(self, token: int) -> bytes:
        """Bytes of a token that begins a text: some decoders take its leading space away."""
        return self._decoder.token_bytes(self._spelled[token], True) if token in self._texts else b""


def _optional(root: Part, name: str) -> Part | None:
    return root.part(name) if root.has(name) else None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadFileError(f"the file is not JSON ({error})", path=path) from error
