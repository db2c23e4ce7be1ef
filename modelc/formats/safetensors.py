"""Reads Safetensors: one file or the shards of an index, with the configuration and tokenizer files beside them.

Tensors stay where they are, as views of the mapped files.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from modelc.formats.checkpoint import INDEX_SUFFIX, index_of, model_of, read_shards, read_sidecars
from modelc.formats.mapping import map_file
from modelc.formats.safetensors_header import read_header
from modelc.ir import JSON, Model, Tensor


def read(path: str | PathLike[str]) -> Model:
    """Reads a Safetensors file; of a sharded model, the index or any shard may be named, and all are read.

    Args:
        path: A `.safetensors` or `.safetensors.index.json` file.

    Returns:
        The model; tensors are read-only views of the mapped files. Metadata has the keys of `__metadata__`, and what
        stands beside the file under `config`, `tokenizer` and the other keys of `checkpoint.SIDECARS`.

    Raises:
        NotFoundError: The file, or a shard, does not exist.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: An element type that modelc does not read.
    """
    path = Path(path)
    index = index_of(path)
    if index is None:
        metadata, tensors = read_mapped(memoryview(map_file(path)), path)
    else:
        metadata, found = read_shards(index, lambda shard: read_mapped(memoryview(map_file(shard)), shard))
        tensors, path = list(found.values()), index.with_name(index.name.removesuffix(INDEX_SUFFIX))
    return model_of(path, "safetensors", {**metadata, **read_sidecars(path.parent)}, tensors)


def read_mapped(data: memoryview, path: Path) -> tuple[dict[str, JSON], list[Tensor]]:
    """The metadata and tensors of one file.

    Args:
        data: The whole file.
        path: Its path, for messages.

    Raises:
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: An element type that modelc does not read.
    """
    metadata, entries = read_header(data, path)
    stored = np.frombuffer(data, np.uint8)
    return metadata, [Tensor(e.name, e.dtype, e.shape, stored[e.begin : e.end]) for e in entries]
