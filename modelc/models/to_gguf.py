"""A Hugging Face model as GGUF has it: names, order of rows, keys and tokenizer, through the tables that load it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from modelc import layout
from modelc.dtypes import DTYPES
from modelc.errors import UnsupportedError
from modelc.ir import JSON, Model, Tensor
from modelc.models.hugging_face import HuggingFace, split_name
from modelc.models.registry import architecture_of, is_hugging_face, refuse_unknown_layers
from modelc.text import chat_template_of, tokenizer_metadata
from modelc.text.hf.gguf_keys import gguf_tokenizer_keys

FAMILIES = {"mistral": "llama", "smollm": "llama"}  # what GGUF calls them
IN_PAIRS = {"llama": ("attn_q", "attn_k")}  # parts whose heads have their rotated columns side by side
FLOATS = ("position_embd.weight", "token_types.weight")  # matrices that are added: float32, as vectors are


def as_gguf(model: Model) -> Model:
    """`model` with GGUF's names and keys; itself, if it has them.

    Raises:
        UnsupportedError: The architecture is not known, or GGUF has no key or name for something.
        BadFileError: A hyperparameter or the tokenizer is damaged.
    """
    if not is_hugging_face(model):
        return model
    architecture = architecture_of(model)
    file, source = architecture.file, architecture.hugging_face
    config = file.Config.from_hf(model)
    if not hasattr(config, "gguf_keys"):  # an architecture that GGUF does not have
        raise UnsupportedError("this architecture cannot be exported to GGUF", got=model.architecture)
    family = FAMILIES.get(model.architecture, model.architecture)
    tensors: dict[str, Tensor] = {}
    used = set()
    for name in {**file.tensors(config), **file.optional_tensors(config)}:
        found = model.tensors.get(source.name_of(name, model.tensors))
        if found is not None:
            used.add(found.name)
            tensors[name] = _converted(found, name, source, config, family)
    refuse_unknown_layers(model, used)
    if hasattr(config, "gguf_vectors"):  # an architecture with hyperparameters that GGUF keeps as tensors
        tensors |= {name: _vector(name, values) for name, values in config.gguf_vectors().items()}
    metadata: dict[str, JSON] = {"general.name": model.name}
    metadata |= {f"{family}.{key}": value for key, value in config.gguf_keys().items()}
    kept = (
        {} if model.metadata.get("tokenizer") else tokenizer_metadata(model.metadata)
    )  # of a model that was GGUF before
    metadata |= kept or gguf_tokenizer_keys(model.metadata, config.vocab_size)
    template = chat_template_of(model.metadata)
    if template is not None:
        metadata["tokenizer.chat_template"] = template
    if any(tensor.dtype.is_block for tensor in tensors.values()):
        metadata["general.quantization_version"] = 2
    return Model(model.name, family, model.source_format, metadata, dict(sorted(tensors.items())))


def _converted(tensor: Tensor, name: str, source: HuggingFace, config: Any, family: str) -> Tensor:
    """A tensor of a checkpoint as GGUF's `name`."""
    part, shape = split_name(name)[0], tensor.shape
    if len(shape) != 2 or name in FLOATS:
        values = layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), shape)
        values = values + np.float32(1) if part in source.less_one else values
        return _vector(name, _in_pairs(values, config.head_dim) if part in IN_PAIRS.get(family, ()) else values)
    dtype, stored = tensor.dtype, layout.plain_bytes(tensor)
    if part in source.transposed:
        if dtype.is_block:
            raise UnsupportedError("a quantized matrix cannot be turned", tensor=tensor.name, got=dtype.name)
        elements = stored.reshape(*shape, -1).swapaxes(0, 1)
        stored, shape = np.ascontiguousarray(elements).reshape(-1), (shape[1], shape[0])
    if part in IN_PAIRS.get(family, ()):
        stored = _in_pairs(stored.reshape(shape[0], -1), config.head_dim).reshape(-1)
    return Tensor(name, dtype, shape, stored)


def _in_pairs(rows: npt.NDArray[Any], head_dim: int) -> npt.NDArray[Any]:
    """Rows (heads * head_dim, ...) whose heads have both halves mixed: 0, head_dim / 2, 1, head_dim / 2 + 1 …."""
    halves = rows.reshape(-1, 2, head_dim // 2, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def _vector(name: str, values: npt.NDArray[np.float32]) -> Tensor:
    values = np.ascontiguousarray(values, np.float32)
    return Tensor(name, DTYPES["f32"], values.shape, values.reshape(-1).view(np.uint8))
