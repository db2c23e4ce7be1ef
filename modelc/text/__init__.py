"""Text: tokenizers, streaming, stop strings, chat templates."""

from modelc.text.answer_reader import AnswerReader, marker_ids
from modelc.text.bpe import BpeTokenizer
from modelc.text.chat_template import ChatTemplate, apply_chat_template
from modelc.text.chat_template_source import chat_template_of
from modelc.text.hf import HfTokenizer
from modelc.text.sentencepiece import SentencePieceTokenizer
from modelc.text.shield import shield_messages
from modelc.text.stop_strings import StopStrings
from modelc.text.stream_decoder import StreamDecoder
from modelc.text.tokenizer import Tokenizer, encode_prompt, load_tokenizer, tokenizer_metadata
from modelc.text.unigram_tokenizer import UnigramTokenizer
from modelc.text.word_piece_tokenizer import WordPieceTokenizer

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
    "load_tokenizer",
    "marker_ids",
    "shield_messages",
    "tokenizer_metadata",
]
