"""Which architecture a model has when its source does not say: told from the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNKNOWN = "unknown"

# An architecture is recognised when every pattern of a row matches some tensor name; the first such row wins.
# Names are GGUF's, then those of Hugging Face, with or without the model's prefix.
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("bert", (r"token_types\.weight", r"blk\.0\.attn_output_norm\.weight")),
    ("bert", (r"(.*\.)?encoder\.layer\.0\.attention\.self\.query\.weight",)),
    ("gpt2", (r"position_embd\.weight", r"blk\.0\.attn_qkv\.weight")),
    ("gpt2", (r"(transformer\.)?h\.0\.attn\.c_attn\.weight",)),
    ("llama", (r"blk\.0\.attn_norm\.weight", r"blk\.0\.attn_q\.weight", r"blk\.0\.ffn_gate\.weight")),
    ("llama", (r"(model\.)?layers\.0\.self_attn\.q_proj\.weight", r"(model\.)?layers\.0\.mlp\.gate_proj\.weight")),
    ("mlp", (r"layer\d+\.weight",)),
    ("mlp", (r"weight",)),
)


def infer_architecture(names: Iterable[str]) -> str:
    """The architecture that tensors of these names belong to.

    Args:
        names: All tensor names of a model.

    Returns:
        `gpt2`, `llama`, `bert`, `mlp`, or `unknown`.
    """
    known = list(names)
    for architecture, patterns in _MARKS:
        if all(any(re.fullmatch(pattern, name) for name in known) for pattern in patterns):
            return architecture
    return UNKNOWN
