"""Text: tokenizers, streaming, stop strings, chat templates."""

from modelc.text.bpe import BpeTokenizer
from modelc.text.chat_template import ChatTemplate, apply_chat_template
from modelc.text.stop_strings import StopStrings
from modelc.text.stream_decoder import StreamDecoder
from modelc.text.tokenizer import Tokenizer, encode_prompt, load_tokenizer, tokenizer_metadata

__all__ = [
    "BpeTokenizer",
    "ChatTemplate",
    "StopStrings",
    "StreamDecoder",
    "Tokenizer",
    "apply_chat_template",
    "encode_prompt",
    "load_tokenizer",
    "tokenizer_metadata",
]
