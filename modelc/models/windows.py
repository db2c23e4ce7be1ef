"""Which layers see a sliding window of positions, and how long it is: 0 stands for all positions."""

from __future__ import annotations

from collections.abc import Callable

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import JSON
from modelc.models.hyperparameters import Hyperparameters

LAYER_TYPES = {"full_attention": False, "sliding_attention": True}


def windows_from_gguf(keys: Hyperparameters, n_layers: int, pattern: int = 1) -> tuple[int, ...]:
    """From `attention.sliding_window`, for each layer; with a pattern of n > 1, every n-th layer sees everything."""
    window = keys.integer("attention.sliding_window", 0, low=0)
    return tuple(window if slides(i, pattern) else 0 for i in range(n_layers))


def windows_from_hf(keys: Hyperparameters, n_layers: int, slides: Callable[[int], bool]) -> tuple[int, ...]:
    """From `sliding_window` and `layer_types`, for each layer; `slides` tells of one when there are no types."""
    window = keys.integer("sliding_window", 0, low=0)
    if not keys.has("layer_types"):
        return tuple(window if slides(i) else 0 for i in range(n_layers))
    types = keys.texts("layer_types")
    if len(types) != n_layers or not set(types) <= set(LAYER_TYPES):
        expected = f"{n_layers} of {' and '.join(sorted(LAYER_TYPES))}"
        raise BadFileError("layer_types of config.json", got=f"{len(types)} of {sorted(set(types))}", expected=expected)
    return tuple(window if LAYER_TYPES[each] else 0 for each in types)


def windows_to_gguf(windows: tuple[int, ...], pattern: int = 1) -> dict[str, JSON]:
    """The reverse of `windows_from_gguf`.

    Raises:
        UnsupportedError: The layers do not follow the pattern.
    """
    window = max(windows)
    if windows != tuple(window if slides(i, pattern) else 0 for i in range(len(windows))):
        raise UnsupportedError("GGUF has no key for windows of some layers", got=f"windows {windows}"[:80])
    return {"attention.sliding_window": window} if window else {}


def slides(layer: int, pattern: int) -> bool:
    """Whether a layer has a window, where each `pattern`-th sees everything (1: none does)."""
    return pattern == 1 or (layer + 1) % pattern != 0
