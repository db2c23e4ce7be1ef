"""LoRA adapters made ready for a model: matched with its weights, in the order of its rows, and scaled.

Source: LoRA (arXiv 2106.09685): W x + s B (A x). Several adapters for one weight are one of their ranks' sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc.errors import BadFileError
from modelc.formats.adapter import Adapter, Pair
from modelc.ir import Tensor
from modelc.layout import LANES
from modelc.models.registry import Lowered
from modelc.models.weights import Weights
from modelc.program import LowRank, Weight

F32 = npt.NDArray[np.float32]

MAX_RANK = 1 << 14
LOOKED_UP = ("token_embd.weight", "position_embd.weight")  # rows are taken from these, they are no products
HF_PREFIXES = ("base_model.", "model.", "transformer.", "language_model.")
# Families whose GGUF files have the rows of q and k in the order of rotated pairs.
PAIRED = ("llama", "mistral", "smollm")
ROTATED = ("attn_q", "attn_k")

STORED_TYPES = ("f32", "f16", "bf16")  # of the matrices in memory

# How an adapter's element types are read; with NumPy, as adapters are small and nothing has to be compiled.
FLOATS: dict[str, Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]] = {
    "f64": lambda stored: stored.view("<f8"),
    "f32": lambda stored: stored.view("<f4"),
    "f16": lambda stored: stored.view("<f2"),
    "bf16": lambda stored: (stored.view("<u2").astype(np.uint32) << 16).view(np.float32),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """Adapters in memory, ready to be lowered.

    Attributes:
        low_rank: for `Weights.adapted`.
        applied: weights of the adapters' files that were taken.
        skipped: names of those that the model has no product with.
        owned: what `low_rank` points to.
    """

    low_rank: Mapping[str, LowRank]
    applied: int
    skipped: list[str]
    owned: list[npt.NDArray[np.uint8]]

    @property
    def n_bytes(self) -> int:
        """Memory of the matrices."""
        return sum(array.nbytes for array in self.owned)


def fit(lowered: Lowered, family: str, adapters: Sequence[tuple[Adapter, float]]) -> Fitted:
    """Match adapters with the weights of a model.

    Args:
        lowered: The model.
        family: Its architecture's name.
        adapters: Each with a factor to its own scale.

    Raises:
        BadFileError: A matrix does not fit its weight, or has values that are not finite; or nothing of an adapter
            belongs to the model.
    """
    shapes = _shapes(lowered)
    targets = _targets(lowered, shapes)
    factors: dict[str, list[tuple[F32, F32]]] = {}
    skipped: list[str] = []
    for adapter, factor in adapters:
        skipped += adapter.others
        found = [(targets.get(_bare(pair.module)), pair) for pair in adapter.pairs]
        if not any(name for name, _ in found):
            got = ", ".join(pair.module for pair in adapter.pairs[:3])
            raise BadFileError("the adapter belongs to another model", path=adapter.path, got=got)
        for name, pair in found:
            if name is None:
                skipped.append(pair.module)
                continue
            a, b = _values(pair.a, adapter), _values(pair.b, adapter, pair.scale * factor)
            rows, cols = shapes[name]
            if (len(b), a.shape[1]) != (rows, cols) or len(a) > MAX_RANK:
                expected = f"rank by {cols} and {rows} by rank, a rank up to {MAX_RANK}"
                got = f"{list(a.shape)} and {list(b.shape)}"
                raise BadFileError("wrong shapes", path=adapter.path, tensor=pair.module, got=got, expected=expected)
            factors.setdefault(name, []).append((a, _in_order_of(lowered.config, family, name, pair, b)))
    owned: list[npt.NDArray[np.uint8]] = []
    low_rank = {}
    for name, parts in factors.items():
        stacked = (np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts], axis=1))
        low_rank[name] = LowRank(*(_stored(matrix, lowered.weights, owned) for matrix in stacked))
    return Fitted(low_rank, sum(map(len, factors.values())), skipped, owned)


def _shapes(lowered: Lowered) -> dict[str, tuple[int, int]]:
    """The weights that are multiplied with, by the architecture's own names."""
    file = lowered.architecture.file
    every = {**file.tensors(lowered.config), **file.optional_tensors(lowered.config)}
    return {
        name: (shape[0], shape[1])
        for name, shape in every.items()
        if len(shape) == 2 and name not in LOOKED_UP and name in lowered.weights
    }


def _targets(lowered: Lowered, shapes: Mapping[str, Any]) -> dict[str, str]:
    """Own names of weights by their modules' names, GGUF's and Hugging Face's."""
    foreign = lowered.architecture.hugging_face
    every = [(spelled, name) for name in shapes for spelled in (name, foreign.name_of(name, ()))]
    return {_bare(spelled.removesuffix(".weight")): name for spelled, name in every}


def _bare(module: str) -> str:
    while prefix := next((prefix for prefix in HF_PREFIXES if module.startswith(prefix)), None):
        module = module.removeprefix(prefix)
    return module


def _values(tensor: Tensor, adapter: Adapter, scale: float = 1.0) -> F32:
    read = FLOATS.get(tensor.dtype.name)
    if read is None:
        got, expected = tensor.dtype.name, ", ".join(FLOATS)
        raise BadFileError("not a float matrix", path=adapter.path, tensor=tensor.name, got=got, expected=expected)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: F32 = (read(tensor.stored).reshape(tensor.shape) * np.float64(scale)).astype(np.float32)
    if not np.isfinite(scaled).all():
        raise BadFileError("a value is not finite", path=adapter.path, tensor=tensor.name, expected="numbers")
    return scaled


def _in_order_of(config: Any, family: str, name: str, pair: Pair, b: F32) -> F32:
    """The rows of B as the model has them: q and k of some GGUF files are sorted into rotated pairs."""
    if name.split(".")[-2] not in ROTATED:
        return b
    is_paired = getattr(config, "rope_style", None) == "pairs"
    of_gguf = _bare(pair.module) == name.removesuffix(".weight")
    from_paired = of_gguf and (is_paired or (config.hugging_face and family in PAIRED))
    if is_paired == from_paired:
        return b
    half = config.head_dim // 2
    split = b.reshape(-1, *((half, 2) if from_paired else (2, half)), b.shape[1])
    return np.ascontiguousarray(split.swapaxes(1, 2).reshape(b.shape))


def _stored(values: F32, weights: Weights, owned: list[npt.NDArray[np.uint8]]) -> Weight:
    rows, cols = values.shape
    dtype, elements = _narrowed(np.ascontiguousarray(values))
    lanes = np.zeros(((rows + LANES - 1) // LANES * LANES, cols), elements.dtype)
    lanes[:rows] = elements
    # As the kernels read floats: 16 rows side by side, column by column.
    owned.append(np.ascontiguousarray(lanes.reshape(-1, LANES, cols).swapaxes(1, 2)).reshape(-1).view(np.uint8))
    return Weight(dtype, rows, cols, owned[-1].ctypes.data - weights.base)


def _narrowed(values: F32) -> tuple[str, npt.NDArray[Any]]:
    """The smallest float type that holds all values as they are, and the values in it.

    Most adapters are stored as f16 or bf16 with a scale that is a power of two; a token reads all of them.
    """
    bits = values.view(np.uint32)
    if not (bits & 0xFFFF).any():
        return "bf16", (bits >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    if (halves.astype(np.float32) == values).all():
        return "f16", halves
    return "f32", values
