"""Pre-tokenizers: how text is cut into words before byte-level BPE merges inside each word.

A pre-tokenizer is one or more stages. A stage isolates every match of its pattern and leaves what lies between; the
next stage sees each piece alone, so nothing looks across a cut. The patterns follow the definitions that the models
were published with (`pre_tokenizer` in their `tokenizer.json`); the names are those of GGUF's `tokenizer.ggml.pre`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import regex

from modelc.errors import UnsupportedError

_LOG = logging.getLogger(__name__)

# English endings after an apostrophe; ASCII letters only, also where case does not matter.
_ENDING = r"'(?:[sdmt]|ll|ve|re)"
_ANY_CASE_ENDING = r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"

# A run of white space leaves its last character to the word that follows it.
_GAP = r"\s+(?!\S)|\s+"
_GAP_OR_DIGIT = r"\s+(?![^\s\p{N}])|\s+"  # the same where digits have been cut off first
_LINES = r"\s*[\r\n]+"

_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKS = r" ?[^\s\p{L}\p{N}]+"

# Words that end where lower case turns to upper case.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"(?:[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*)"

_GPT2 = rf"{_ENDING}| ?\p{{L}}+| ?\p{{N}}+|{_MARKS}|{_GAP}"
_SINGLE_DIGITS = rf"{_ENDING}| ?\p{{L}}+|\p{{N}}|{_MARKS}|{_GAP_OR_DIGIT}"
_LLAMA3 = rf"{_ANY_CASE_ENDING}|{_LETTERS}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|{_LINES}|{_GAP}"
_QWEN2 = rf"{_ANY_CASE_ENDING}|{_LETTERS}|\p{{N}}|{_MARKS}[\r\n]*|{_LINES}|{_GAP}"
_QWEN35 = (
    rf"{_ANY_CASE_ENDING}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_LINES}|{_GAP}"
)
_BAILING = rf"{_ANY_CASE_ENDING}|{_LETTERS}|\p{{N}}|{_MARKS}[\r\n]*|\s*[\r\n]|{_GAP}"
_SEED = rf"{_ANY_CASE_ENDING}|{_LETTERS}|\p{{N}}|{_MARKS}|{_LINES}|{_GAP}"
_NO_ENDINGS = rf"{_LETTERS}|\p{{N}}|{_MARKS}[\r\n]*|{_LINES}|{_GAP}"
_MINICPM5 = rf"{_ANY_CASE_ENDING}|{_LETTERS}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|{_LINES}|{_GAP_OR_DIGIT}"
_EXAONE_MOE = (
    rf"{_ANY_CASE_ENDING}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}\p{{M}}*+(?: ?\p{{L}}\p{{M}}*+)*+|\p{{N}}"
    rf"|{_MARKS}[\r\n/]?|\s*[\r\n]|{_GAP}"
)
_TEKKEN = rf"{_CASED}|\p{{N}}|{_MARKS}[\r\n/]*|{_LINES}|{_GAP}"
_GPT4O = rf"{_CASED}(?:{_ANY_CASE_ENDING})?|\p{{N}}{{1,3}}|{_MARKS}[\r\n/]*|{_LINES}|{_GAP}"

_KANJI_KANA = r"[\u4e00-\u9fa5\u3040-\u30ff]+"
_DEEPSEEK = r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" rf"|{_LINES}|{_GAP}"
_EAST_ASIAN = r"[\u0800-\u9fa5\uac00-\ud7ff]+"
_BLOOM = r" ?[^\s(|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_PUNCTUATION = r"[\p{P}$+<=>^~|]+"


@dataclass(frozen=True, slots=True)
class _Family:
    """How some models split: names in `tokenizer.ggml.pre`, stages, and what goes with them."""

    names: str
    stages: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False


_FAMILIES: tuple[_Family, ...] = (
    _Family(
        "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat a.x-4.0 mellum "
        "modern-bert mpt olmo jais trillion granite-docling exaone4",
        (_GPT2,),
    ),
    _Family("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", (_SINGLE_DIGITS,)),
    _Family(
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        (_LLAMA3,),
        whole_words=True,
        add_bos=True,
    ),
    _Family("dbrx smaug-bpe chatglm-bpe", (_LLAMA3,)),
    _Family("glm4", (_LLAMA3,), whole_words=True),
    _Family("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", (_QWEN2,)),
    _Family("qwen35", (_QWEN35,)),
    _Family("laguna", (r"\n+", _QWEN2)),
    _Family("bailingmoe bailingmoe2 llada-moe", (_BAILING,)),
    _Family("seed-coder", (_SEED,)),
    _Family("ufakzeka", (_NO_ENDINGS,)),
    _Family("minicpm5", (_MINICPM5,), whole_words=True),
    _Family("exaone-moe", (_EXAONE_MOE,)),
    _Family("tekken", (_TEKKEN,), whole_words=True, add_bos=True),
    _Family("gpt-4o llama4 kanana2 talkie minimax-m2", (_GPT4O,)),
    _Family("granite-embed-multi-97m", (_GPT4O,), whole_words=True),
    _Family("deepseek-v3 hunyuan-dense joyai-llm hy_v4", (r"\p{N}{1,3}", _KANJI_KANA, _DEEPSEEK)),
    _Family(
        "deepseek-llm",
        (
            r"[\r\n]",
            r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
            r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"(?<!\s)\s++\Z",
            _EAST_ASIAN,
            r"\p{N}+",
        ),
    ),
    _Family("deepseek-coder", (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}")),
    _Family("falcon", (r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9]{3}")),
    _Family("poro-chat bloom gpt3-finnish", (_BLOOM,)),
    _Family("viking", (_BLOOM, r"\p{N}")),
    _Family(
        "chameleon",
        (
            "<sentinel:[0-9]+>",
            "IMGIMG[A-I]{1,4}Z",
            r"[\t\n]|    |  ",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
        add_bos=True,
    ),
    _Family("default", (_PUNCTUATION, _GPT2, r"\p{N}+", "[0-9]{3}")),
)

_BY_NAME = {name: family for family in _FAMILIES for name in family.names.split()}

# Published, and not built here: what comes nearest.
_NEAREST = {
    "afmoe": "deepseek-v3",
    "cohere2moe": "gpt-4o",
    "jais-2": "dbrx",
    "kimi-k2": "gpt-4o",
    "spark2_5": "deepseek-v3",
    "superbpe": "llama-bpe",
    "tiny_aya": "gpt-4o",
    "youtu": "gpt-4o",
}
# These merge characters and not bytes: no pattern would make their tokens right.
_NOT_BYTE_LEVEL = frozenset({"gemma4", "granite-embed-multi-311m", "sarvam-moe", "whitespace"})


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How one model cuts text into words.

    Attributes:
        name: The name in the table, also when another was asked for and this one is the nearest.
        stages: Compiled patterns, each with one group around the whole of it.
        whole_words: A word that is a token is that token, whatever the merges say.
        add_bos: Text starts with BOS where the metadata do not say.
    """

    name: str
    stages: tuple[regex.Pattern[str], ...]
    whole_words: bool = False
    add_bos: bool = False

    def split(self, text: str) -> list[str]:
        """Cut `text` into words; joined they are `text` again."""
        pieces = [text]
        for stage in self.stages:
            # One group around the pattern: split() gives what is between the matches, and the matches.
            pieces = [word for piece in pieces for word in stage.split(piece) if word]
        return pieces


def find_pre_tokenizer(name: str | None) -> PreTokenizer:
    """The pre-tokenizer that a model file names.

    Args:
        name: `tokenizer.ggml.pre`; None when the file has none.

    Returns:
        The one of that name. An unknown name is one warning, and the nearest.

    Raises:
        UnsupportedError: The name stands for a tokenizer that is not byte-level.
    """
    if name in _NOT_BYTE_LEVEL:
        raise UnsupportedError("this pre-tokenizer is not byte-level", got=name, hint="use another model")
    known = name if name in _BY_NAME else _nearest(name)
    if known != name:
        what = "the model names no pre-tokenizer" if name is None else f"unknown pre-tokenizer {name[:64]!r}"
        _LOG.warning("%s: using %r, tokens may differ from the model's own", what, known)
    return _compiled(known)


def _nearest(name: str | None) -> str:
    if name is None:
        return "default"
    if name in _NEAREST:
        return _NEAREST[name]
    near = get_close_matches(name[:64].casefold(), _BY_NAME, n=1)
    return near[0] if near else "default"


@cache
def _compiled(name: str) -> PreTokenizer:
    family = _BY_NAME[name]
    stages = tuple(regex.compile(f"({pattern})") for pattern in family.stages)
    return PreTokenizer(name, stages, family.whole_words, family.add_bos)
