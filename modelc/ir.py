"""The `Model` IR: named tensors with shape, dtype and stored bytes, and the source's metadata.

Every reader makes a `Model`, every writer takes one; `verify` is its grammar, run after the first and before
the second.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DTYPES, DType
from modelc.errors import BadFileError, BadInputError

JSON: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None
MAX_NAME_CHARS = 65535
MAX_METADATA_DEPTH = 32
MAX_DIMS = 8
MAX_INT = (1 << 63) - 1

_SCALARS = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One named tensor.

    Attributes:
        name: The source's name for it.
        dtype: Element or block type.
        shape: Logical shape, outermost dimension first (NumPy's order); 0 for a tensor without elements is allowed.
        stored: uint8 (n_bytes,), usually a read-only view of the mapped file, in `layout`.
        layout: `plain` is the source's own bytes, `lanes` the order in which kernels read them.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    stored: npt.NDArray[np.uint8]
    layout: str = "plain"

    @property
    def n_elements(self) -> int:
        """Number of logical elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model as its source has it.

    Attributes:
        name: Name for users; the source file's stem unless another was given.
        architecture: `llama`, `gpt2`, `bert`, `mlp`, …, or `unknown`.
        source_format: The format it was first read from (`gguf`, `safetensors`, …).
        metadata: The source's keys as they are; JSON values only. Strings keep invalid UTF-8 as surrogate escapes.
        tensors: By name, in ascending order of the name.
    """

    name: str
    architecture: str
    source_format: str
    metadata: dict[str, JSON]
    tensors: dict[str, Tensor]

    @property
    def total_params(self) -> int:
        """Number of logical elements in all tensors."""
        return sum(tensor.n_elements for tensor in self.tensors.values())

    @property
    def total_bytes(self) -> int:
        """Size in bytes of all tensors in the source's own layout."""
        return sum(tensor.dtype.nbytes(tensor.shape) for tensor in self.tensors.values())

    def to_json(self) -> str:
        """The whole model as JSON text, tensor bytes in base64; for tests and tooling."""
        tensors = [
            {
                "name": tensor.name,
                "dtype": tensor.dtype.name,
                "shape": list(tensor.shape),
                "layout": tensor.layout,
                "data": base64.b64encode(tensor.stored.data).decode("ascii"),
            }
            for tensor in self.tensors.values()
        ]
        head = {"name": self.name, "architecture": self.architecture, "source_format": self.source_format}
        return json.dumps({**head, "metadata": self.metadata, "tensors": tensors})

    @classmethod
    def from_json(cls, text: str) -> Model:
        """The inverse of `to_json`.

        Raises:
            BadInputError: `text` is not JSON of that form.
            BadFileError: The model breaks a rule of `verify`.
        """
        try:
            fields = json.loads(text)
            tensors = [_tensor_from_json(entry) for entry in fields["tensors"]]
            tensors.sort(key=lambda tensor: tensor.name)
            model = cls(
                fields["name"],
                fields["architecture"],
                fields["source_format"],
                dict(fields["metadata"]),
                {tensor.name: tensor for tensor in tensors},
            )
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise BadInputError("not a model in JSON", param="text", got=f"{type(error).__name__} {error}") from None
        if len(model.tensors) != len(tensors):
            raise BadInputError("two tensors have the same name", param="tensors")
        verify(model)
        return model


def _tensor_from_json(entry: Mapping[str, Any]) -> Tensor:
    stored = np.frombuffer(base64.b64decode(entry["data"], validate=True), np.uint8)
    return Tensor(entry["name"], DTYPES[entry["dtype"]], tuple(entry["shape"]), stored, entry["layout"])


# ---- rules: each is (what is wrong, what would be right, a check that returns what was found, or None when it holds)

_ModelRule: TypeAlias = tuple[str, str, Callable[[Model], object]]
_TensorRule: TypeAlias = tuple[str, str, Callable[[Tensor], object]]


def _is_name(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_NAME_CHARS


def _is_key(text: object) -> bool:
    return isinstance(text, str) and len(text) <= MAX_NAME_CHARS


def _wrong_text(text: object) -> object:
    return None if _is_name(text) else repr(text)


def _wrong_json(metadata: object) -> object:
    """Walks level by level, each container once a level: neither sharing nor cycles cost more than the depth."""
    if type(metadata) is not dict:
        return f"a {type(metadata).__name__}"
    if "" in metadata:
        return "the key ''"
    level: list[Any] = [metadata]
    for _ in range(MAX_METADATA_DEPTH):
        inner: dict[int, Any] = {}
        for container in level:
            if isinstance(container, dict):
                # A vocabulary may have the empty string as a token.
                if not all(map(_is_key, container)):
                    return f"the key {next(key for key in container if not _is_key(key))!r}"
                items = container.values()
            else:
                items = container
            # A vocabulary is a list of 100,000 strings: one pass over its types is all it costs.
            if set(map(type, items)) <= _SCALARS:
                continue
            for item in items:
                if type(item) in (list, dict):
                    inner[id(item)] = item
                elif type(item) not in _SCALARS:
                    return f"a value of type {type(item).__name__}"
        if not inner:
            return None
        level = list(inner.values())
    return f"more than {MAX_METADATA_DEPTH} levels"


def _wrong_order(model: Model) -> object:
    names = list(model.tensors)
    return None if names == sorted(names) else "another order"


def _wrong_key(model: Model) -> object:
    return next((f"'{key}' for '{tensor.name}'" for key, tensor in model.tensors.items() if key != tensor.name), None)


def _wrong_dtype(tensor: Tensor) -> object:
    return None if DTYPES.get(tensor.dtype.name) == tensor.dtype else tensor.dtype


def _wrong_shape(tensor: Tensor) -> object:
    whole = all(type(dim) is int and 0 <= dim <= MAX_INT for dim in tensor.shape)
    return None if whole and len(tensor.shape) <= MAX_DIMS else list(tensor.shape)


def _wrong_block(tensor: Tensor) -> object:
    whole = not tensor.dtype.is_block or (tensor.shape and tensor.shape[-1] % tensor.dtype.block_cols == 0)
    return None if whole else f"{tensor.dtype.name} {list(tensor.shape)}"


def _wrong_layout(tensor: Tensor) -> object:
    known = tensor.layout == "plain" or (tensor.layout == "lanes" and len(tensor.shape) == 2)
    return None if known else f"'{tensor.layout}' for {tensor.dtype.name} {list(tensor.shape)}"


def _wrong_array(tensor: Tensor) -> object:
    stored = tensor.stored
    flat = (
        isinstance(stored, np.ndarray) and stored.dtype == np.uint8 and stored.ndim == 1 and stored.flags.c_contiguous
    )
    return None if flat else type(stored).__name__


def _wrong_size(tensor: Tensor) -> object:
    # How much padding "lanes" has is known to the layout package, which stands above this one.
    exact = tensor.layout != "plain" or tensor.stored.nbytes == tensor.dtype.nbytes(tensor.shape)
    return None if exact else f"{tensor.stored.nbytes} bytes for {tensor.dtype.name} {list(tensor.shape)}"


MODEL_RULES: tuple[_ModelRule, ...] = (
    ("the model has no proper name", "1 to 65535 characters", lambda model: _wrong_text(model.name)),
    ("the architecture has no proper name", "1 to 65535 characters", lambda model: _wrong_text(model.architecture)),
    ("the source format has no proper name", "1 to 65535 characters", lambda model: _wrong_text(model.source_format)),
    (
        "metadata is not JSON",
        "an object of strings, numbers, lists and objects",
        lambda model: _wrong_json(model.metadata),
    ),
    ("a tensor stands under another name", "the tensor's own name as its key", _wrong_key),
    ("tensors are not sorted", "ascending order of the names", _wrong_order),
)

TENSOR_RULES: tuple[_TensorRule, ...] = (
    ("a tensor has no proper name", "1 to 65535 characters", lambda tensor: _wrong_text(tensor.name)),
    ("a tensor's dtype is unknown", "an entry of DTYPES", _wrong_dtype),
    ("a tensor has a wrong dimension", f"at most {MAX_DIMS} whole numbers, none negative", _wrong_shape),
    ("a tensor's rows are not whole blocks", "a last dimension that is a multiple of the block", _wrong_block),
    ("a tensor's layout is unknown", "'plain', or 'lanes' for two dimensions", _wrong_layout),
    ("a tensor's bytes are not a flat array", "a contiguous one-dimensional uint8 array", _wrong_array),
    ("a tensor's bytes do not fit its shape", "exactly the size of its dtype and shape", _wrong_size),
)


def verify(model: Model, path: str | PathLike[str] | None = None) -> None:
    """Checks `model` against every rule of the IR.

    Args:
        model: What a reader made or a writer is about to write.
        path: The file it came from, for the message.

    Raises:
        BadFileError: The first rule that does not hold, with the tensor's name where there is one.
    """
    for what, expected, check in MODEL_RULES:
        if (got := check(model)) is not None:
            raise BadFileError(what, path=path, expected=expected, got=got)
    for tensor in model.tensors.values():
        for what, expected, tensor_check in TENSOR_RULES:
            if (got := tensor_check(tensor)) is not None:
                raise BadFileError(what, path=path, tensor=str(tensor.name), expected=expected, got=got)
