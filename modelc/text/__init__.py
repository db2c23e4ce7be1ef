"""Text: tokenizers, streaming, stop strings, chat templates.

The tokenizers that few models have are imported when they are first used: they compile many patterns.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from modelc.text.answer_reader import AnswerReader, marker_ids
from modelc.text.bpe import BpeTokenizer
from modelc.text.chat_messages import with_system
from modelc.text.chat_template import ChatTemplate, apply_chat_template
from modelc.text.chat_template_source import chat_template_of
from modelc.text.open_message import is_continued, open_field, refuse_closed
from modelc.text.sentencepiece import SentencePieceTokenizer
from modelc.text.shield import shield_messages
from modelc.text.stop_strings import StopStrings
from modelc.text.stream_decoder import StreamDecoder
from modelc.text.tokenizer import Tokenizer, encode_prompt, load_tokenizer, tokenizer_metadata

if TYPE_CHECKING:
    from modelc.text.hf import HfTokenizer
    from modelc.text.unigram_tokenizer import UnigramTokenizer
    from modelc.text.word_piece_tokenizer import WordPieceTokenizer

_LATE = {
    "HfTokenizer": "modelc.text.hf",
    "UnigramTokenizer": "modelc.text.unigram_tokenizer",
    "WordPieceTokenizer": "modelc.text.word_piece_tokenizer",
}

__all__ = [
    "AnswerReader",
    "BpeTokenizer",
    "ChatTemplate",
    "HfTokenizer",
    "SentencePieceTokenizer",
    "StopStrings",
    "StreamDecoder",
    "Tokenizer",
    "UnigramTokenizer",
    "WordPieceTokenizer",
    "apply_chat_template",
    "chat_template_of",
    "encode_prompt",
    "is_continued",
    "load_tokenizer",
    "marker_ids",
    "open_field",
    "refuse_closed",
    "shield_messages",
    "tokenizer_metadata",
    "with_system",
]


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'modelc.text' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
