"""A GGUF model as Hugging Face has it: names, order of rows and configuration, through the tables that load both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from modelc import layout
from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import JSON, Model, Tensor
from modelc.models.hugging_face import HuggingFace, split_name
from modelc.models.registry import ARCHITECTURES, is_hugging_face, refuse_unknown_layers
from modelc.models.rope_keys import LONG_FACTORS, SHORT_FACTORS, llama3_scaling
from modelc.models.to_gguf import IN_PAIRS

# Type and class of a model in `config.json`, by GGUF's name of the architecture.
CLASSES = {
    "gemma3": ("gemma3_text", "Gemma3ForCausalLM"),
    "gpt2": ("gpt2", "GPT2LMHeadModel"),
    "llama": ("llama", "LlamaForCausalLM"),
    "mistral": ("mistral", "MistralForCausalLM"),
    "phi3": ("phi3", "Phi3ForCausalLM"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM"),
}
ROPE_DIVISORS = "rope_freqs.weight"


def as_hugging_face(model: Model) -> Model:
    """`model` with Hugging Face's names, and a configuration under `config`; itself, if it has them.

    Tensors that no table names stay as they are; so does a model that modelc cannot run.
    """
    architecture = ARCHITECTURES.get(model.architecture)
    if is_hugging_face(model) or architecture is None or model.architecture not in CLASSES:
        return model
    file, source = architecture.file, architecture.hugging_face
    try:
        config = file.Config.from_gguf(model)
        known = {**file.tensors(config), **file.optional_tensors(config)}
        refuse_unknown_layers(model, known)
    except (BadFileError, UnsupportedError):
        return model
    tensors = dict(model.tensors)
    divisors = tensors.get(ROPE_DIVISORS)
    scaling = None if divisors is None else llama3_scaling(divisors, config.rope_theta)
    if scaling is not None:
        config = replace(config, rope_scaling=scaling)
        del tensors[ROPE_DIVISORS]
    for name in (LONG_FACTORS, SHORT_FACTORS):
        tensors.pop(name, None)  # they are in the configuration
    made = [
        _converted(tensor, source, config.head_dim, model.architecture) if name in known else tensor
        for name, tensor in tensors.items()
    ]
    metadata = {**model.metadata, "config": _config_json(model, config, "output.weight" not in tensors)}
    by_name = {tensor.name: tensor for tensor in sorted(made, key=lambda tensor: tensor.name)}
    return replace(model, metadata=metadata, tensors=by_name)


def _config_json(model: Model, config: Any, tied: bool) -> dict[str, JSON]:
    windowed = model.architecture == "llama" and max(config.windows) > 0
    model_type, class_name = CLASSES["mistral" if windowed else model.architecture]
    keys: dict[str, JSON] = {"architectures": [class_name], "model_type": model_type, **config.hf_keys()}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("padding", "pad")):
        keys[f"{key}_token_id"] = model.metadata.get(f"tokenizer.ggml.{name}_token_id")
    return {**keys, "tie_word_embeddings": tied, "attention_bias": "blk.0.attn_q.bias" in model.tensors}


def _converted(tensor: Tensor, source: HuggingFace, head_dim: int, family: str) -> Tensor:
    """A tensor under GGUF's name as a checkpoint has it."""
    name, part = source.name_of(tensor.name, ()), split_name(tensor.name)[0]
    if part in source.less_one:
        values = layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape) - np.float32(1)
        return Tensor(name, DTYPES["f32"], tensor.shape, values.view(np.uint8))
    if part in IN_PAIRS.get(family, ()):
        pairs = layout.plain_bytes(tensor).reshape(-1, head_dim // 2, 2, tensor.dtype.nbytes((1, *tensor.shape[1:])))
        return replace(tensor, name=name, stored=np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(-1), layout="plain")
    if part in source.transposed and len(tensor.shape) == 2:
        turned = np.ascontiguousarray(layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape).T)
        return Tensor(name, DTYPES["f32"], turned.shape, turned.reshape(-1).view(np.uint8))
    return replace(tensor, name=name)
