"""Texts of tokens that end a turn or a document in known models."""

from __future__ import annotations

from collections.abc import Iterable

_END_TEXTS = """<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|calls|> <|flush|> <end_of_turn> <|endoftext|> </s>
<|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <｜end▁of▁sentence｜> [e~["""
# In code models: padding, the next repository, the next file. What follows is no longer the answer.
_CODE_END_TEXTS = """<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD] <|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>
<|file_sep|>"""
_ALL = frozenset({*_END_TEXTS.split(), *_CODE_END_TEXTS.split()})


def known_ends(tokens: Iterable[tuple[int, str]]) -> set[int]:
    """Ids of the tokens (id and text) whose text is a well-known end."""
    found = {text: token for token, text in tokens if text in _ALL}
    # Where a message ends with <|return|> or <|call|>, <|end|> only ends a part of it.
    if found.keys() & {"<|call|>", "<|calls|>"} and found.keys() & {"<|return|>", "<|flush|>"}:
        found.pop("<|end|>", None)
    return set(found.values())
