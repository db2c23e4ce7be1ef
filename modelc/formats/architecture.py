"""Which architecture a model has: from its configuration, otherwise from the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as short_repr

from modelc.errors import BadFileError
from modelc.ir import JSON

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

# Names of Hugging Face that differ from those that everybody else uses.
_ALIASES = {"gemma3_text": "gemma3"}
# LlamaForCausalLM, GPT2LMHeadModel, BertModel
_CLASS_NAME = re.compile(r"(?P<family>[A-Z]\w*?)(For[A-Z]\w*|LMHeadModel|Model)")


def architecture_of(metadata: Mapping[str, JSON], names: Iterable[str], path: Path) -> str:
    """The architecture of a checkpoint.

    Args:
        metadata: With the parsed `config.json` under `config`, if there is one.
        names: All tensor names.
        path: The weights file, for messages.

    Returns:
        `model_type` of the configuration, or the family of the class in `architectures`, or what the names tell.

    Raises:
        BadFileError: One of the two has another type.
    """
    config = metadata.get("config")
    if not isinstance(config, dict):
        return infer_architecture(names)
    model_type, classes = config.get("model_type"), config.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes else None
    for key, value, right in (
        ("model_type", model_type, model_type is None or isinstance(model_type, str)),
        ("architectures", classes, classes is None or classes == [] or isinstance(first, str)),
    ):
        if not right:
            raise BadFileError(f"{key} in config.json is wrong", path=path, expected="a name", got=short_repr(value))
    if isinstance(model_type, str) and model_type:
        return _ALIASES.get(model_type, model_type)
    match = _CLASS_NAME.fullmatch(first) if isinstance(first, str) else None
    return match["family"].lower() if match else infer_architecture(names)


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
