"""RoPE's base and scaling as GGUF and Hugging Face write them down."""

from __future__ import annotations

from modelc.errors import UnsupportedError
from modelc.models.frequencies import RopeScaling
from modelc.models.hyperparameters import Hyperparameters

KINDS = {"default": "none", "none": "none", "linear": "linear", "llama3": "llama3", "yarn": "yarn"}


def scaling_from_gguf(keys: Hyperparameters) -> RopeScaling:
    """From `rope.scaling.*` (`keys` have the architecture's prefix)."""
    kind = _kind(keys.text("rope.scaling.type", "none"))
    if kind == "none" and keys.number("rope.scaling.factor", 1.0, low=1e-6) != 1.0:
        kind = "linear"  # what a factor without a type stands for
    if kind == "none":
        return RopeScaling()
    return RopeScaling(
        kind=kind,
        factor=keys.number("rope.scaling.factor", 1.0, low=1e-6),
        original_context=keys.integer("rope.scaling.original_context_length", 1),
        attention_factor=keys.number("rope.scaling.attn_factor") if keys.has("rope.scaling.attn_factor") else None,
    )


def theta_from_hf(keys: Hyperparameters) -> float:
    """From `rope_theta`, at the top or in `rope_parameters`."""
    inner = keys.section("rope_parameters")
    return (inner if inner.has("rope_theta") else keys).number("rope_theta", 10000.0, low=1.0)


def scaling_from_hf(keys: Hyperparameters) -> RopeScaling:
    """From `rope_parameters`, or from `rope_scaling` of older configurations."""
    section = keys.section("rope_parameters" if keys.has("rope_parameters") else "rope_scaling")
    kind = _kind(section.text("rope_type", section.text("type", "default")))
    if kind == "none":
        return RopeScaling()
    trained = keys.integer("max_position_embeddings")
    return RopeScaling(
        kind=kind,
        factor=section.number("factor", low=1e-6),
        original_context=section.integer("original_max_position_embeddings", trained),
        low_freq_factor=section.number("low_freq_factor", 1.0, low=1e-6),
        high_freq_factor=section.number("high_freq_factor", 4.0, low=1e-6),
        beta_fast=section.number("beta_fast", 32.0, low=1e-6),
        beta_slow=section.number("beta_slow", 1.0, low=1e-6),
        attention_factor=section.number("attention_factor") if section.has("attention_factor") else None,
    )


def _kind(name: str) -> str:
    if name not in KINDS:
        raise UnsupportedError("RoPE scaling", got=name, expected=", ".join(sorted(KINDS)))
    return KINDS[name]
