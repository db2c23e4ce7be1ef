"""Which tensors of a model get which type when it is packed, and their conversion.

Only matrices whose columns are inputs are converted. Everything else stays as the source has it: norms, biases,
vectors, convolutions, tables of positions and token types, integers, and matrices with few elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from modelc.dtypes import DTYPES, DType
from modelc.errors import BadFileError, BadInputError, did_you_mean
from modelc.ir import JSON, Model, Tensor
from modelc.layout import LANES, QUANTIZED_TYPES, float_rows, is_float, quantize

UNCHANGED = "source"
# int8 and int4 are the block types with one scale for 32 weights of a row: finer than a scale for the whole row.
ALIASES = {"fp32": "f32", "fp16": "f16", "int8": "q8_0", "int4": "q4_0"}
TYPES = (*(name for name in QUANTIZED_TYPES if name != "f32"), "f32", *ALIASES)
# For columns that are no multiple of 256: the next larger type in blocks of 32; for no multiple of 32: float16.
FALLBACKS = {
    "q2_k": "iq4_nl",
    "q3_k": "iq4_nl",
    "iq4_xs": "iq4_nl",
    "q4_k": "q5_0",
    "q5_k": "q5_1",
    "q6_k": "q8_0",
}
LAST_FALLBACK = "f16"
SMALL_ELEMENTS = 1024
CHUNK_BYTES = 16 << 20  # of float32 values at a time

# Tables that are added rather than multiplied, and the layers of gpt2 that its Hugging Face files keep transposed.
_FLOAT_NAMES = re.compile(
    r"(^|\.)(position_embd|token_types|wpe|position_embeddings|token_type_embeddings)\.weight$"
    r"|\.(c_attn|c_proj|c_fc)\.weight$"
)
# llama.cpp's numbers for `general.file_type`.
_FILE_TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q8_0": 7,
    "q5_0": 8,
    "q5_1": 9,
    "q2_k": 10,
    "q3_k": 11,
    "q4_k": 14,
    "q5_k": 16,
    "q6_k": 18,
    "iq4_nl": 25,
    "iq4_xs": 30,
    "bf16": 32,
}


@dataclass(frozen=True, slots=True)
class Quantization:
    """What to do with a model's matrices; passed to the writer of `.modelc` files.

    Attributes:
        target: A key of `DTYPES` for all matrices; None to leave them.
        keep: Pairs of a name pattern (`*`, `?`, `[]`) and a type, or `UNCHANGED`; the first that matches counts.
        prune: Weights with a smaller absolute value become 0 first; 0 for none.
    """

    target: str | None = None
    keep: tuple[tuple[str, str], ...] = field(default=())
    prune: float = 0.0

    @classmethod
    def parse(cls, target: str | None, keep: Sequence[str], prune: float) -> Quantization:
        """From what users write.

        Args:
            target: A name in `TYPES`, upper or lower case.
            keep: `PATTERN=TYPE`, or `PATTERN` alone for the source's type.
            prune: The threshold.

        Raises:
            BadInputError: An unknown type, a rule without pattern, or a threshold that is no positive number.
        """
        if not 0 <= prune < float("inf"):
            raise BadInputError("not a threshold", param="prune", got=prune, expected="a number not below 0")
        rules = []
        for rule in keep:
            pattern, sign, name = rule.rpartition("=")
            if not sign:
                pattern, name = rule, UNCHANGED
            if not pattern:
                raise BadInputError("a rule without a pattern", param="keep", got=rule, expected="PATTERN=TYPE")
            rules.append((pattern, name if name == UNCHANGED else _type_name(name, "keep")))
        return cls(None if target is None else _type_name(target, "quantize"), tuple(rules), prune)

    @property
    def changes_anything(self) -> bool:
        """Whether any tensor may come out other than it is."""
        return self.target is not None or bool(self.keep) or self.prune > 0

    def check(self, names: Iterable[str]) -> None:
        """Checks that every rule matches a tensor.

        Raises:
            BadInputError: One does not.
        """
        known = list(names)
        for pattern, _ in self.keep:
            if not any(fnmatchcase(name, pattern) for name in known):
                hint = did_you_mean(pattern, known) or "see `modelc inspect` for the names"
                raise BadInputError("no tensor matches a rule", param="keep", got=pattern, hint=hint)

    def dtype_of(self, tensor: Tensor) -> DType:
        """The type that the tensor gets."""
        wanted = self._wanted(tensor)
        if wanted is None:
            return tensor.dtype
        cols = tensor.shape[1]
        for name in (wanted, FALLBACKS.get(wanted, LAST_FALLBACK)):
            if cols % DTYPES[name].block_cols == 0:
                return DTYPES[name]
        return DTYPES[LAST_FALLBACK]

    def convert(self, tensor: Tensor) -> Tensor:
        """The tensor in its new type, pruned; the same tensor where nothing changes.

        Raises:
            BadFileError: It has a value that the type cannot hold.
        """
        dtype, prune = self.dtype_of(tensor), self.prune
        if self._wanted(tensor) is None or (dtype == tensor.dtype and not prune):
            return tensor
        rows, cols = tensor.shape
        row_bytes = dtype.nbytes((cols,))
        stored = np.empty(dtype.nbytes(tensor.shape), np.uint8)
        step = max(CHUNK_BYTES // (4 * cols * LANES), 1) * LANES
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            values = float_rows(tensor, start, stop)
            if prune:
                values[np.abs(values) < np.float32(prune)] = 0
            try:
                stored[start * row_bytes : stop * row_bytes] = quantize(dtype, values, values.shape)
            except BadInputError as error:
                raise BadFileError(
                    f"cannot be quantized to {dtype.name}: {error.what}",
                    tensor=tensor.name,
                    got=error.got,
                    expected=error.expected,
                    hint=f"--keep '{tensor.name}' leaves it as it is",
                ) from None
        return Tensor(tensor.name, dtype, tensor.shape, stored)

    def metadata_of(self, model: Model) -> dict[str, JSON]:
        """The model's metadata; where GGUF's keys name the type of the weights, they name the new one."""
        if self.target is None or "general.file_type" not in model.metadata:
            return model.metadata
        changed: dict[str, JSON] = {"general.file_type": _FILE_TYPES[self.target]}
        if DTYPES[self.target].is_block:
            changed["general.quantization_version"] = 2
        return {**model.metadata, **changed}

    def _wanted(self, tensor: Tensor) -> str | None:
        """The type that the rules ask for, whatever the columns; None for the source's."""
        for pattern, name in self.keep:
            if fnmatchcase(tensor.name, pattern):
                return name if name != UNCHANGED and _is_matrix(tensor) else None
        if not _is_weight(tensor):
            return None
        if self.target is None and self.prune:
            # Pruned weights are written anew, in the same type where modelc can.
            return tensor.dtype.name if tensor.dtype.name in QUANTIZED_TYPES else "f32"
        return self.target


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.shape) == 2 and min(tensor.shape) > 0 and is_float(tensor.dtype)


def _is_weight(tensor: Tensor) -> bool:
    """Whether the tensor is one whose type may change without being named."""
    return _is_matrix(tensor) and tensor.n_elements >= SMALL_ELEMENTS and not _FLOAT_NAMES.search(tensor.name)


def _type_name(text: str, param: str) -> str:
    name = text.lower()
    if name not in TYPES:
        hint = did_you_mean(name, TYPES)
        raise BadInputError("not a type to quantize to", param=param, got=text, expected=", ".join(TYPES), hint=hint)
    return ALIASES.get(name, name)
