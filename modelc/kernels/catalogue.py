"""All compiled functions by name. An opcode's name has its variant: `matmul.q4_1.a8`, `attention.64.3.f16`.

The tables name modules without importing them: that takes Numba, and is done only to compile.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Where an opcode's factory is, and its first arguments; the parts of the name behind the opcode follow them.
FACTORIES: dict[str, tuple[str, ...]] = {
    "array_conv": ("array_conv:make_array_conv",),
    "array_copy": ("array_copy:make_array_copy",),
    "array_gemm": ("array_gemm:make_array_gemm",),
    "array_gemm_f64": ("array_gemm:make_array_gemm_f64",),
    "array_lstm_cell": ("array_recurrent:make_array_lstm_cell",),
    "array_map": ("array_maps:make_array_map",),
    "array_norm": ("array_rows:make_array_norm",),
    "array_pair": ("array_maps:make_array_pair",),
    "array_panels": ("array_gemm:make_array_panels",),
    "array_reduce": ("array_reduce:make_array_reduce",),
    "array_softmax": ("array_rows:make_array_softmax",),
    "array_steps": ("array_steps:make_array_steps",),
    "attention": ("attention:make_attention",),
    "attention_scores": ("attention:make_attention_scores",),
    "bias": ("bias:make_bias",),
    "embed": ("embed:make_embed",),
    "full_attention": ("full_attention:make_full_attention",),
    "geglu": ("gated:make_gate", "gelu_tanh"),
    "geglu_quantize": ("gated:make_gate_quantize", "gelu_tanh"),
    "head_norm": ("norm:make_head_norm",),
    "kv_write": ("kv_write:make_kv_write",),
    "layer_norm": ("norm:make_norm", "layer"),
    "layer_norm_quantize": ("norm:make_norm", "layer"),
    "matmul": ("matmul:make_matmul",),
    "matmul_add": ("matmul:make_matmul_add",),
    "quantize": ("activations:make_quantize",),
    "rms_norm": ("norm:make_norm", "rms"),
    "rms_norm_quantize": ("norm:make_norm", "rms"),
    "rope": ("rope:make_rope",),
    "rope_angles": ("rope:make_rope_angles",),
    "swiglu": ("gated:make_gate", "silu"),
    "swiglu_quantize": ("gated:make_gate_quantize", "silu"),
}

# Functions of one parameter block that come in variants.
BLOCK_FACTORIES: dict[str, tuple[str, ...]] = {
    "shift": ("shift:make_shift",),
}

# Functions that Python calls, beside the opcodes: where they are, and how many integers they take.
FUNCTIONS: dict[str, tuple[str, int]] = {
    "execute": ("executor:execute", 6),
    "worker": ("executor:worker", 5),
    "log_softmax": ("log_softmax:log_softmax", 1),
    "repeats": ("repeats:repeats", 1),
    "sample": ("sample:sample", 1),
    "select": ("select:select", 1),
    "spin": ("executor:spin", 2),
}


def recipe(name: str) -> tuple[str, ...]:
    """Where the function `name` or its factory is, `module:attribute` below `modelc.kernels`, and first arguments."""
    if name in FUNCTIONS:
        return FUNCTIONS[name][:1]
    opcode = name.partition(".")[0]
    return BLOCK_FACTORIES.get(opcode) or FACTORIES[opcode]


def function(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The Numba function `name`, not yet compiled, and the types of its arguments."""
    from numba import types

    from modelc.kernels.executor import OPCODE_ARGS

    place, *first = recipe(name)
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"modelc.kernels.{module}"), attribute)
    if name in FUNCTIONS:
        return found, (types.int64,) * FUNCTIONS[name][1]
    opcode, *variant = name.split(".")
    made = found(*first, *(int(part) if part.isdigit() else part for part in variant))
    return made, (types.int64,) if opcode in BLOCK_FACTORIES else OPCODE_ARGS
