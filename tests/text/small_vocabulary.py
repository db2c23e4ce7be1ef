"""Hand-made GGUF tokenizer metadata: the 256 bytes, a few merges, special tokens at the end."""

from typing import Any

from modelc.text.byte_alphabet import BYTE_CHARS

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def metadata(*merges: str, special: dict[str, int] | None = None, **keys: Any) -> dict[str, Any]:
    """The keys of a small byte-level BPE in which each byte is its own id.

    `special` gives types to more tokens; `keys` are more of `tokenizer.ggml.*`, None takes one out.
    """
    texts = [*BYTE_CHARS, *(merge.replace(" ", "") for merge in merges)]
    special = special or {}
    found: dict[str, Any] = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [*texts, *special],
        "token_type": [NORMAL] * len(texts) + list(special.values()),
        "merges": list(merges),
    } | keys
    return {f"tokenizer.ggml.{name}": value for name, value in found.items() if value is not None}
