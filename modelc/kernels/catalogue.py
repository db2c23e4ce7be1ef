"""All compiled functions by name. An opcode's name has its variant: `matmul.q4_1.a8`, `attention.64.3.f16`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from modelc.kernels.activations import make_quantize
from modelc.kernels.attention import make_attention, make_attention_scores
from modelc.kernels.bias import make_bias
from modelc.kernels.embed import make_embed
from modelc.kernels.executor import OPCODE_ARGS, execute, spin, worker
from modelc.kernels.gated import make_gate, make_gate_quantize
from modelc.kernels.kv_write import make_kv_write
from modelc.kernels.matmul import make_matmul
from modelc.kernels.norm import make_head_norm, make_norm
from modelc.kernels.rope import make_rope, make_rope_angles
from modelc.kernels.sample import sample
from modelc.kernels.shift import make_shift

FACTORIES: dict[str, Callable[..., Any]] = {
    "attention": lambda head_dim, group, kv: make_attention(int(head_dim), int(group), kv),
    "attention_scores": lambda head_dim, group, kv: make_attention_scores(int(head_dim), int(group), kv),
    "bias": make_bias,
    "embed": make_embed,
    "geglu": lambda: make_gate("gelu_tanh"),
    "geglu_quantize": lambda form: make_gate_quantize("gelu_tanh", form),
    "head_norm": lambda head_dim: make_head_norm(int(head_dim)),
    "kv_write": lambda head_dim, kv: make_kv_write(int(head_dim), kv),
    "layer_norm": lambda: make_norm("layer"),
    "layer_norm_quantize": lambda form: make_norm("layer", form),
    "matmul": make_matmul,
    "quantize": make_quantize,
    "rms_norm": lambda: make_norm("rms"),
    "rms_norm_quantize": lambda form: make_norm("rms", form),
    "rope": lambda style, head_dim: make_rope(style, int(head_dim)),
    "rope_angles": make_rope_angles,
    "swiglu": lambda: make_gate("silu"),
    "swiglu_quantize": lambda form: make_gate_quantize("silu", form),
}


# Functions that Python calls, beside the opcodes: their arguments' types.
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "execute": (execute, (types.int64,) * 6),
    "worker": (worker, (types.int64,) * 5),
    "sample": (sample, (types.int64,)),
    "spin": (spin, (types.int64,) * 2),
}


# Compiled functions of one parameter block that come in variants.
BLOCK_FACTORIES: dict[str, Callable[..., Any]] = {
    "shift": lambda style, head_dim, kv: make_shift(style, int(head_dim), kv),
}


def function(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The Numba function `name`, not yet compiled, and the types of its arguments."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    opcode, *variant = name.split(".")
    if opcode in BLOCK_FACTORIES:
        return BLOCK_FACTORIES[opcode](*variant), (types.int64,)
    return FACTORIES[opcode](*variant), OPCODE_ARGS


def compile_object(name: str) -> tuple[str, bytes]:
    """Compile `name` for the target CPU; returns its symbol and the object file (ELF, Mach-O or COFF)."""
    dispatcher, signature = function(name)
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    _, _, (code, _) = compiled.library.serialize_using_object_code()
    return compiled.fndesc.llvm_func_name, code
