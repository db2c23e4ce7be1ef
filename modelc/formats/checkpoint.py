"""What stands beside the weights of a checkpoint: configuration and tokenizer files, and the index of its shards.

Source: the folder layout of Hugging Face models (`NAME.safetensors.index.json`, `config.json`, …).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

from modelc.errors import BadFileError
from modelc.formats.architecture import architecture_of
from modelc.formats.contained import contained
from modelc.formats.json_text import read_json
from modelc.formats.mapping import exists, map_file, names_in
from modelc.ir import JSON, Model, Tensor, verify

INDEX_SUFFIX = ".index.json"

# Metadata key -> file, and what is in it.
SIDECARS: dict[str, tuple[str, type]] = {
    "config": ("config.json", dict),
    "generation_config": ("generation_config.json", dict),
    "tokenizer": ("tokenizer.json", dict),
    "tokenizer_config": ("tokenizer_config.json", dict),
    "special_tokens_map": ("special_tokens_map.json", dict),
    "chat_template": ("chat_template.jinja", str),
    "modules": ("modules.json", list),  # sentence encoders: their stages
    "pooling": ("1_Pooling/config.json", dict),
}

_SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-\d{5}(?P<suffix>\.\w+)", re.DOTALL)


def sidecar_files(folder: Path) -> dict[str, Path]:
    """The files beside weights in `folder` that belong to the model, by metadata key."""
    names = set(names_in(folder))
    return {
        key: folder / name
        for key, (name, _) in SIDECARS.items()
        if name.split("/")[0] in names and exists(folder / name)
    }


def read_sidecars(folder: Path) -> dict[str, JSON]:
    """The content of those files: parsed JSON, and templates as text.

    Raises:
        BadFileError: One of them is damaged.
    """
    metadata: dict[str, JSON] = {}
    for key, path in sidecar_files(folder).items():
        kind = SIDECARS[key][1]
        metadata[key] = map_file(path)[:].decode("utf-8", "surrogateescape") if kind is str else read_json(path, kind)
    return metadata


def index_of(path: Path) -> Path | None:
    """The index of shards that `path` is, or that names it as one of its shards; None for a file that is whole."""
    if path.name.endswith(INDEX_SUFFIX):
        return path
    match = _SHARD.fullmatch(path.name)
    index = path.with_name(f"{match['stem']}{match['suffix']}{INDEX_SUFFIX}") if match else None
    return index if index is not None and exists(index) and path in shards_of(index) else None


def shards_of(index: Path) -> list[Path]:
    """The files that an index names, sorted.

    Raises:
        BadFileError: The index is damaged, or names a file outside its folder.
    """
    return sorted({contained(name, index, folders=False) for name in set(_weight_map(index).values())})


def read_shards(
    index: Path, read: Callable[[Path], tuple[Mapping[str, JSON], Iterable[Tensor]]]
) -> tuple[dict[str, JSON], dict[str, Tensor]]:
    """The metadata and tensors of all shards.

    Args:
        index: The index file.
        read: Reads one shard; returns its metadata and tensors.

    Returns:
        Metadata, of which the first shard to have a key decides it; tensors by name.

    Raises:
        NotFoundError: A shard is missing.
        BadFileError: Index and shards contradict each other.
    """
    metadata: dict[str, JSON] = {}
    tensors: dict[str, Tensor] = {}
    homes: dict[str, str] = {}
    for path in shards_of(index):
        of_shard, found = read(path)
        metadata = {**of_shard, **metadata}
        for tensor in found:
            if tensor.name in tensors:
                got = f"{homes[tensor.name]} and {path.name}"
                raise BadFileError("a tensor is in two shards", path=index, tensor=tensor.name, got=got)
            tensors[tensor.name] = tensor
            homes[tensor.name] = path.name
    for name, shard in _weight_map(index).items():
        if homes.get(name) != shard:
            hint = "download the shards again, all of one version"
            got = homes.get(name, "no shard")
            raise BadFileError(
                "the index names another shard", path=index, tensor=name, expected=f"in {shard}", got=got, hint=hint
            )
    return metadata, tensors


def model_of(path: Path, source_format: str, metadata: dict[str, JSON], tensors: list[Tensor]) -> Model:
    """The checked model of a checkpoint file.

    Args:
        path: The file, which gives the name.
        source_format: `safetensors`, `pytorch` or `onnx`.
        metadata: What the file says, and what stands beside it.
        tensors: With different names, in any order.
    """
    by_name = {tensor.name: tensor for tensor in sorted(tensors, key=lambda tensor: tensor.name)}
    model = Model(path.stem, architecture_of(metadata, by_name, path), source_format, metadata, by_name)
    verify(model, path)
    return model


def _weight_map(index: Path) -> dict[str, Any]:
    names = read_json(index).get("weight_map")
    if type(names) is not dict or not names or not all(type(name) is str for name in names.values()):
        expected = "an object of tensor and file names"
        raise BadFileError("the index has no proper weight_map", path=index, expected=expected, got=short_repr(names))
    return names
