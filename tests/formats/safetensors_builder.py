"""Safetensors files for tests, byte by byte, right and wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def entry(dtype: str = "F32", shape: Any = (1,), begin: Any = 0, end: Any = 4) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def build(header: Any, data: bytes = b"") -> bytes:
    """A file of `header`, an object or text, and `data`."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensors(*named: tuple[str, str, tuple[int, ...], bytes], metadata: dict[str, str] | None = None) -> bytes:
    """A proper file of tensors given as (name, dtype, shape, bytes)."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for name, dtype, shape, content in named:
        header[name] = entry(dtype, shape, len(data), len(data) + len(content))
        data += content
    return build(header, data)


def small_safetensors() -> bytes:
    return tensors(
        ("layer0.weight", "F32", (2, 3), bytes(range(24))),
        ("flags", "BOOL", (3,), b"\1\0\1"),
        ("layer0.bias", "F16", (2,), b"\0\x3c\0\xc0"),
        ("none", "I64", (0, 4), b""),
        metadata={"format": "pt", "author": "nobody"},
    )


def write_shards(folder: Path, stem: str = "model", suffix: str = ".safetensors") -> Path:
    """Two shards with a tensor each, and their index; returns the index."""
    weight_map = {}
    for number, name in enumerate(("b", "a"), 1):
        shard = f"{stem}-0000{number}-of-00002{suffix}"
        (folder / shard).write_bytes(tensors((name, "U8", (2,), bytes([number, 0])), metadata={"part": str(number)}))
        weight_map[name] = shard
    index = folder / f"{stem}{suffix}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 4}, "weight_map": weight_map}))
    return index
