"""RoPE's base and scaling as GGUF and Hugging Face write them down."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from modelc import layout
from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import JSON, Model, Tensor
from modelc.models.frequencies import RopeScaling, rope_frequencies
from modelc.models.hyperparameters import Hyperparameters

KINDS = {"default": "none", "linear": "linear", "llama3": "llama3", "longrope": "longrope", "none": "none"}
KINDS |= {"su": "longrope", "yarn": "yarn"}
LEAST_THETA = 1.001  # a base of 1 turns all columns alike, and has no logarithm to divide by
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"


def scaling_from_gguf(keys: Hyperparameters, model: Model) -> RopeScaling:
    """From `rope.scaling.*` (`keys` have the architecture's prefix) and the divisors among the tensors."""
    longrope = LONG_FACTORS in model.tensors and SHORT_FACTORS in model.tensors
    kind = "longrope" if longrope else _kind(keys.text("rope.scaling.type", "none"))
    if kind == "none" and keys.number("rope.scaling.factor", 1.0, low=1e-6) != 1.0:
        kind = "linear"  # what a factor without a type stands for
    if kind == "none":
        return RopeScaling()
    return _checked(
        kind=kind,
        factor=keys.number("rope.scaling.factor", 1.0, low=1e-6),
        original_context=keys.integer("rope.scaling.original_context_length", 1),
        attention_factor=keys.number("rope.scaling.attn_factor") if keys.has("rope.scaling.attn_factor") else None,
        short_divisors=_values(model, SHORT_FACTORS) if longrope else (),
        long_divisors=_values(model, LONG_FACTORS) if longrope else (),
    )


def theta_from_hf(keys: Hyperparameters) -> float:
    """From `rope_theta`, at the top or in `rope_parameters`."""
    inner = keys.section("rope_parameters")
    return (inner if inner.has("rope_theta") else keys).number("rope_theta", 10000.0, low=LEAST_THETA)


def scaling_from_hf(keys: Hyperparameters, section: Hyperparameters | None = None) -> RopeScaling:
    """From `section`, or `rope_parameters`, or `rope_scaling` of older configurations."""
    section = section or keys.section("rope_parameters" if keys.has("rope_parameters") else "rope_scaling")
    kind = _kind(section.text("rope_type", section.text("type", "default")))
    if kind == "none":
        return RopeScaling()
    trained = keys.integer("max_position_embeddings")
    holder = section if section.has("original_max_position_embeddings") else keys
    original = holder.integer("original_max_position_embeddings", trained)
    return _checked(
        kind=kind,
        factor=section.number("factor", trained / original if kind == "longrope" else None, low=1e-6),
        original_context=original,
        low_freq_factor=section.number("low_freq_factor", 1.0, low=1e-6),
        high_freq_factor=section.number("high_freq_factor", 4.0, low=1e-6),
        beta_fast=section.number("beta_fast", 32.0, low=1e-6),
        beta_slow=section.number("beta_slow", 1.0, low=1e-6),
        attention_factor=section.number("attention_factor") if section.has("attention_factor") else None,
        short_divisors=section.numbers("short_factor", low=1e-6) if kind == "longrope" else (),
        long_divisors=section.numbers("long_factor", low=1e-6) if kind == "longrope" else (),
    )


def rotated_from_hf(keys: Hyperparameters, head_dim: int) -> int:
    """Columns of a head that are rotated, from `partial_rotary_factor`."""
    inner = keys.section("rope_parameters")
    holder = inner if inner.has("partial_rotary_factor") else keys
    return int(head_dim * holder.number("partial_rotary_factor", 1.0, high=1.0))


def scaling_to_gguf(s: RopeScaling) -> dict[str, JSON]:
    """The reverse of `scaling_from_gguf`, without what is in tensors (see `scaling_vectors`).

    Raises:
        UnsupportedError: GGUF has no key for a part of it.
    """
    plain = RopeScaling(s.kind, s.factor, s.original_context)
    if s.kind == "longrope":
        return {
            "rope.scaling.original_context_length": s.original_context,
            "rope.scaling.attn_factor": s.magnitude,
        }
    if s.kind in ("none", "llama3"):
        return {}
    if s.kind == "yarn" and (s.beta_fast, s.beta_slow, s.attention_factor) != (plain.beta_fast, plain.beta_slow, None):
        raise UnsupportedError("GGUF has no key for this YaRN scaling", got="beta_fast, beta_slow or attention_factor")
    return {
        "rope.scaling.type": s.kind,
        "rope.scaling.factor": s.factor,
        "rope.scaling.original_context_length": s.original_context,
    }


def scaling_vectors(s: RopeScaling, columns: int, theta: float) -> dict[str, npt.NDArray[np.float32]]:
    """What GGUF keeps of a scaling as tensors: divisors of the frequencies, float32 (columns / 2,)."""
    if s.kind == "longrope":
        longest = s.original_context + 1
        divisors = {LONG_FACTORS: s.divisors(longest), SHORT_FACTORS: s.divisors(s.original_context)}
        return {name: values for name, values in divisors.items() if values is not None}
    if s.kind == "llama3":
        plain, scaled = rope_frequencies(columns, theta), rope_frequencies(columns, theta, s)
        return {"rope_freqs.weight": (plain / scaled).astype(np.float32)}
    return {}


def scaling_to_hf(s: RopeScaling) -> dict[str, JSON] | None:
    """The reverse of `scaling_from_hf`, as `rope_scaling`."""
    if s.kind == "none":
        return None
    keys: dict[str, JSON] = {"rope_type": s.kind}
    if s.kind != "longrope":  # which goes by the two lengths of context
        keys["factor"] = s.factor
    if s.kind != "linear":
        keys["original_max_position_embeddings"] = s.original_context
    if s.kind == "llama3":
        keys |= {"low_freq_factor": s.low_freq_factor, "high_freq_factor": s.high_freq_factor}
    if s.kind == "yarn":
        keys |= {"beta_fast": s.beta_fast, "beta_slow": s.beta_slow}
    if s.kind == "longrope":
        keys |= {"short_factor": list(s.short_divisors), "long_factor": list(s.long_divisors)}
    return keys if s.attention_factor is None else {**keys, "attention_factor": s.attention_factor}


def llama3_scaling(divisors: Tensor, theta: float) -> RopeScaling | None:
    """The llama3 scaling that GGUF's divisors of the frequencies stand for; None, if they do not come from one."""
    values = layout.dequantize(divisors.dtype, layout.plain_bytes(divisors), divisors.shape)
    scaling = RopeScaling("llama3", float(values.max()), 8192, 1.0, 4.0)  # what Llama 3.1 to 3.3 have
    expected = scaling_vectors(scaling, 2 * len(values), theta)["rope_freqs.weight"]
    return scaling if np.allclose(values, expected, rtol=1e-5) else None


def _checked(**fields: Any) -> RopeScaling:
    """A scaling whose parts fit together."""
    scaling = RopeScaling(**fields)
    if scaling.kind == "llama3" and scaling.high_freq_factor <= scaling.low_freq_factor:
        got = f"{scaling.low_freq_factor:g} and {scaling.high_freq_factor:g}"
        raise BadFileError("RoPE scaling", expected="low_freq_factor below high_freq_factor", got=got)
    if scaling.kind in ("yarn", "longrope") and scaling.original_context < 2:
        raise BadFileError("RoPE scaling", expected="an original context of 2 or more", got=scaling.original_context)
    return scaling


def _kind(name: str) -> str:
    if name not in KINDS:
        raise UnsupportedError("RoPE scaling", got=name, expected=", ".join(sorted(KINDS)))
    return KINDS[name]


def _values(model: Model, name: str) -> tuple[float, ...]:
    tensor = model.tensors[name]
    return tuple(layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape).reshape(-1).tolist())
