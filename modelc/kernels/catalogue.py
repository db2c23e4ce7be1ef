"""All opcodes by name. A name is the opcode and its variant: `matmul.q4_1.a8`, `attention.64.3.f16`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modelc.kernels.activations import make_quantize
from modelc.kernels.attention import make_attention, make_attention_scores
from modelc.kernels.embed import make_embed
from modelc.kernels.gated import swiglu
from modelc.kernels.matmul import make_matmul
from modelc.kernels.norm import rms_norm
from modelc.kernels.rope import make_kv_write, make_rope, make_rope_angles

FACTORIES: dict[str, Callable[..., Any]] = {
    "attention": lambda head_dim, group, kv: make_attention(int(head_dim), int(group), kv),
    "attention_scores": lambda head_dim, group, kv: make_attention_scores(int(head_dim), int(group), kv),
    "embed": make_embed,
    "kv_write": lambda head_dim, kv: make_kv_write(int(head_dim), kv),
    "matmul": make_matmul,
    "quantize": make_quantize,
    "rms_norm": lambda: rms_norm,
    "rope": lambda style, head_dim: make_rope(style, int(head_dim)),
    "rope_angles": make_rope_angles,
    "swiglu": lambda: swiglu,
}


def make(name: str) -> Any:
    """The Numba function of opcode `name`, not yet compiled."""
    opcode, *variant = name.split(".")
    return FACTORIES[opcode](*variant)
