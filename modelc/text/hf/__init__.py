"""Tokenizers as a `tokenizer.json` describes them: normalizer, pre-tokenizer, model, post-processor, decoder."""

from modelc.text.hf.tokenizer import HfTokenizer

__all__ = ["HfTokenizer"]
