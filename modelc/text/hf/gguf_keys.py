"""A Hugging Face tokenizer as GGUF's keys: for files that llama.cpp reads.

GGUF has names for whole ways of cutting text, so that only tokenizers made of known parts can be written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelc.errors import UnsupportedError
from modelc.text.hf.added_tokens import added_tokens_of
from modelc.text.hf.model import vocab_of
from modelc.text.hf.part import Part
from modelc.text.hf.tokenizer import HfTokenizer
from modelc.text.space_cuts import MARK
from modelc.text.vocabulary import TokenType

_CONTINUES = "##"
_MARKS = r" ?[^\s\p{L}\p{N}]+"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cased(ending: str) -> str:
    start = r"[^\r\n\p{L}\p{N}]?"
    return f"{start}{_UPPER}*{_LOWER}+{ending}|{start}{_UPPER}+{_LOWER}*{ending}"


# What a `Split` before `ByteLevel` cuts out, and whether whole words are looked up first, as `tokenizer.ggml.pre`.
_SPLITS = {
    (rf"{_ENDINGS}|{_LETTERS}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|{_REST}", True): "llama-bpe",
    (rf"{_ENDINGS}|{_LETTERS}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|{_REST}", False): "dbrx",
    (rf"{_ENDINGS}|{_LETTERS}|\p{{N}}|{_MARKS}[\r\n]*|{_REST}", False): "qwen2",
    (rf"{_cased(_ENDINGS + '?')}|\p{{N}}{{1,3}}|{_MARKS}[\r\n/]*|{_REST}", False): "gpt-4o",
    (rf"{_cased('')}|\p{{N}}|{_MARKS}[\r\n/]*|{_REST}", True): "tekken",
}


def gguf_tokenizer_keys(metadata: Mapping[str, Any], n_rows: int) -> dict[str, Any]:
    """The keys `tokenizer.ggml.*` of a model that comes with a `tokenizer.json`, or with none.

    Args:
        metadata: As for `HfTokenizer`.
        n_rows: Rows of the model's embedding; ids without a text become unused tokens.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: GGUF has no name for a part of it; the error says which.
    """
    if metadata.get("tokenizer") is None:
        return {"tokenizer.ggml.model": "no_vocab"}
    tokenizer = HfTokenizer(metadata)
    root = Part(metadata["tokenizer"], "")
    model = root.part("model")
    kind = "bert" if model.kind == "WordPiece" else _bpe_kind(root, model)
    texts, types = _texts_and_types(root, model, n_rows, kind)
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": types,
    }
    if kind == "gpt2":
        keys["tokenizer.ggml.pre"] = _pre_tokenizer(root, model)
        keys["tokenizer.ggml.merges"] = [" ".join(merge) for merge in _merges(model)]
    elif kind == "llama":
        keys["tokenizer.ggml.pre"] = "default"
        keys["tokenizer.ggml.scores"] = _scores(texts, model)
        keys["tokenizer.ggml.add_space_prefix"] = _adds_space(root)
    else:
        keys |= _word_piece(root, model)
    return keys | _special(tokenizer, root, model, kind)


def _bpe_kind(root: Part, model: Part) -> str:
    if model.kind != "BPE":
        raise UnsupportedError("GGUF has no such tokenizer for this model", got=model.kind, expected="BPE, WordPiece")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.text(name, ""):
            raise UnsupportedError("GGUF has no such tokenizer", param=f"model.{name}", got=model.text(name))
    return "llama" if model.flag("byte_fallback", False) else "gpt2"


def _pre_tokenizer(root: Part, model: Part) -> str:
    steps = _steps(root, "pre_tokenizer", "pretokenizers")
    kinds = [step.kind for step in steps]
    if kinds[-1:] == ["ByteLevel"] and not steps[-1].flag("add_prefix_space", True):
        regex = steps[-1].flag("use_regex", True)
        if kinds == ["ByteLevel"] and regex:
            return "gpt-2"
        if kinds == ["Digits", "ByteLevel"] and regex and steps[0].flag("individual_digits", False):
            return "smollm"
        if kinds == ["Split", "ByteLevel"] and not regex and steps[0].text("behavior") == "Isolated":
            pattern = steps[0].part("pattern")
            name = _SPLITS.get((pattern.text("Regex", ""), model.flag("ignore_merges", False)))
            if name:
                return name
    got = ", ".join(kinds) or "none"
    raise UnsupportedError("GGUF has no name for this pre-tokenizer", param="pre_tokenizer", got=got)


def _steps(root: Part, name: str, inner: str) -> list[Part]:
    if not root.has(name):
        return []
    part = root.part(name)
    return part.parts(inner) if part.kind == "Sequence" else [part]


def _texts_and_types(root: Part, model: Part, n_rows: int, kind: str) -> tuple[list[str], list[int]]:
    """Text and type of each row of the embedding."""
    added = added_tokens_of(root)
    ids = vocab_of(model) | {token.text: token.id for token in added}
    n_tokens = max(n_rows, max(ids.values(), default=-1) + 1)
    texts = [f"[UNUSED{i}]" for i in range(n_tokens)]
    types = [int(TokenType.UNUSED)] * n_tokens
    for text, token in ids.items():
        texts[token], types[token] = text, TokenType.NORMAL
        if kind == "llama" and len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            types[token] = TokenType.BYTE
        elif kind == "bert":
            texts[token] = text.removeprefix(_CONTINUES) if text.startswith(_CONTINUES) else MARK + text
    for each in added:
        texts[each.id] = each.text
        if types[each.id] != TokenType.BYTE:
            types[each.id] = TokenType.CONTROL if each.special else TokenType.USER_DEFINED
    unknown = ids.get(model.text("unk_token", ""))
    if unknown is not None and kind == "llama":
        types[unknown] = TokenType.UNKNOWN
    return texts, [int(each) for each in types]


def _merges(model: Part) -> list[tuple[str, str]]:
    merges = []
    for merge in model.items("merges"):
        left, _, right = merge.partition(" ") if isinstance(merge, str) else (*merge[:1], " ", *merge[1:])
        if " " in left or " " in right:
            raise UnsupportedError("GGUF cannot hold a merge of texts with spaces", param="model.merges", got=merge)
        merges.append((left, right))
    return merges


def _scores(texts: list[str], model: Part) -> list[float]:
    """The earlier a merge, the higher the score of what it makes; what no merge makes comes last."""
    ranks: dict[str, int] = {}
    for rank, (left, right) in enumerate(_merges(model)):
        ranks.setdefault(left + right, rank)
    return [-float(ranks.get(text, len(ranks) + 1)) for text in texts]


def _adds_space(root: Part) -> bool:
    if any(step.kind == "Prepend" for step in _steps(root, "normalizer", "normalizers")):
        return True
    metaspaces = (step for step in _steps(root, "pre_tokenizer", "pretokenizers") if step.kind == "Metaspace")
    return any(step.text("prepend_scheme", "always") != "never" for step in metaspaces)


def _word_piece(root: Part, model: Part) -> dict[str, Any]:
    prefix = model.text("continuing_subword_prefix", _CONTINUES)
    normalizers = _steps(root, "normalizer", "normalizers")
    if prefix != _CONTINUES or [step.kind for step in normalizers] != ["BertNormalizer"]:
        raise UnsupportedError("GGUF has only BERT's own WordPiece", param="normalizer", got=prefix)
    keys: dict[str, Any] = {"tokenizer.ggml.token_type_count": 2}
    if not normalizers[0].flag("lowercase", True):
        keys["tokenizer.ggml.normalizer.lowercase"] = False
    return keys


def _special(tokenizer: HfTokenizer, root: Part, model: Part, kind: str) -> dict[str, Any]:
    ids = vocab_of(model) | {token.text: token.id for token in added_tokens_of(root)}
    if len(tokenizer.before) > 1 or len(tokenizer.after) > 1:
        raise UnsupportedError("GGUF can put one token before a text and one after it", param="post_processor")
    before, after = next(iter(tokenizer.before), None), next(iter(tokenizer.after), None)
    named = {
        "bos": tokenizer.bos_id if before is None else before,
        "eos": tokenizer.eos_id if after is None else after,
        "padding": tokenizer.pad_id,
        "unknown": ids.get(model.text("unk_token", "")),
    }
    if kind == "bert":
        named |= {"cls": before, "seperator": after, "mask": ids.get("[MASK]")}
    elif tokenizer.eos_id not in (None, named["eos"]):
        raise UnsupportedError("GGUF can put only EOS after a text", param="post_processor", got=f"token {after}")
    other_ends = sorted(tokenizer.eog_ids - {named["eos"]}) if kind != "bert" else []
    named["eot"] = next(iter(other_ends), None)
    keys: dict[str, Any] = {
        f"tokenizer.ggml.{name}_token_id": token for name, token in named.items() if token is not None
    }
    keys["tokenizer.ggml.add_bos_token"] = before is not None
    keys["tokenizer.ggml.add_eos_token"] = after is not None
    if other_ends:
        keys["tokenizer.ggml.eog_token_ids"] = sorted(tokenizer.eog_ids)
    return keys
