"""Small `.modelc` files for tests: models to write, and files forged with a valid checksum over a wrong header."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from modelc.dtypes import DTYPES
from modelc.formats.modelc.header import PREFIX_BYTES, data_start, encode_prefix
from modelc.ir import Model, Tensor

METADATA: dict[str, Any] = {
    "general.name": "Tiny",
    "llama.block_count": 2,
    "llama.rope.freq_base": 1e5,
    "tokenizer.ggml.tokens": ["a", "Ġb", "", "日本", "\udcff\udcfe", "\0", '"\\'],
    "tokenizer.flags": [True, False],
    "tokenizer.chat_template": "{{ messages }}",
    "nested": [[1, -2], ["x"], {"y": None}],
}


def vector(name: str, kind: str, cols: int, seed: int = 1) -> Tensor:
    """A tensor that is stored plain, so that no kernel is needed."""
    dtype = DTYPES[kind]
    stored = np.random.default_rng(seed).integers(0, 256, dtype.nbytes((cols,)), np.uint8)
    return Tensor(name, dtype, (cols,), stored)


def tiny_model(**metadata: Any) -> Model:
    tensors = [vector("a.weight", "f32", 5), vector("b", "q4_0", 64, 2), vector("c", "i64", 1), vector("ä\n", "u8", 70)]
    tensors.sort(key=lambda tensor: tensor.name)
    return Model("tiny", "llama", "gguf", METADATA | metadata, {tensor.name: tensor for tensor in tensors})


def forge(path: Path, change: Callable[[Any], Any]) -> None:
    """Rewrites the JSON header of a file; prefix, lengths and checksum fit the new one. `change` may return another."""
    content = path.read_bytes()
    text_bytes = int.from_bytes(content[16:24], "little")
    fields = json.loads(content[PREFIX_BYTES : PREFIX_BYTES + text_bytes])
    changed = change(fields)
    fields = fields if changed is None else changed
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    padding = bytes(data_start(len(text)) - PREFIX_BYTES - len(text))
    rest = text + padding + content[data_start(text_bytes) :]
    version = int.from_bytes(content[8:12], "little")
    path.write_bytes(encode_prefix(version, text, PREFIX_BYTES + len(rest)) + rest)
