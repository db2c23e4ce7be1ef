"""LoRA adapter files with random matrices, and the models that they would make when merged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc import layout
from modelc.ir import Model
from tests.formats.safetensors_builder import tensors

F32 = npt.NDArray[np.float32]
Pairs = Mapping[str, tuple[F32, F32]]  # A (rank, cols) and B (rows, rank) by the weight's name in GGUF

ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_output")
EVERY = (*ATTENTION, "ffn_gate", "ffn_up", "ffn_down")
HF_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def pairs_for(model: Model, parts: tuple[str, ...] = EVERY, rank: int = 4, seed: int = 0) -> Pairs:
    """Random pairs for all layers' weights of these parts, as strong as the weights themselves."""
    rng = np.random.default_rng(seed)
    pairs = {}
    for name, tensor in model.tensors.items():
        if name.endswith(".weight") and name.split(".")[-2] in parts:
            rows, cols = tensor.shape
            a = rng.standard_normal((rank, cols)).astype(np.float32) / np.float32(cols**0.5)
            b = rng.standard_normal((rows, rank)).astype(np.float32) / np.float32(rank**0.5)
            pairs[name.removesuffix(".weight")] = (a, b)
    return pairs


def merged(model: Model, pairs: Pairs, scale: float) -> Model:
    """The model with W + scale * B A in place of its float32 matrices W."""
    changed = dict(model.tensors)
    for name, (a, b) in pairs.items():
        tensor = model.tensors[name + ".weight"]
        w = layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape).astype(np.float64)
        total = (w + scale * b.astype(np.float64) @ a.astype(np.float64)).astype(np.float32)
        changed[name + ".weight"] = replace(tensor, stored=total.reshape(-1).view(np.uint8))
    return replace(model, tensors=changed)


def hf_name(name: str) -> str:
    """PEFT's name of a module: `blk.0.attn_q` is `base_model.model.model.layers.0.self_attn.q_proj`."""
    if not name.startswith("blk."):
        return f"base_model.model.{ {'output': 'lm_head', 'token_embd': 'model.embed_tokens'}[name] }"
    _, layer, part = name.split(".")
    return f"base_model.model.model.layers.{layer}.{HF_PARTS[part]}"


def as_hugging_face(pairs: Pairs, head_dim: int) -> Pairs:
    """The same pairs with rows of q and k in halves, as Hugging Face's models have them, not in pairs."""
    made = {}
    for name, (a, b) in pairs.items():
        if name.split(".")[-1] in ("attn_q", "attn_k"):
            pairs_of_rows = b.reshape(-1, head_dim // 2, 2, b.shape[1])
            made[hf_name(name)] = (a, pairs_of_rows.swapaxes(1, 2).reshape(b.shape))
        else:
            made[hf_name(name)] = (a, b)
    return made


def write_adapter(
    path: Path,
    pairs: Pairs,
    spelled: str = "{}.lora_{}.weight",
    config: Mapping[str, Any] | None = None,
    dtype: str = "F32",
    extra: tuple[tuple[str, str, tuple[int, ...], bytes], ...] = (),
) -> Path:
    """Write a Safetensors adapter; `config` stands beside it as `adapter_config.json`."""
    numpy_type = {"F32": np.float32, "F16": np.float16, "F64": np.float64}[dtype]
    named = [
        (spelled.format(name, part), dtype, matrix.shape, matrix.astype(numpy_type).tobytes())
        for name, (a, b) in pairs.items()
        for part, matrix in (("A", a), ("B", b))
    ]
    path.write_bytes(tensors(*named, *extra))
    if config is not None:
        path.with_name("adapter_config.json").write_text(json.dumps(config))
    return path
