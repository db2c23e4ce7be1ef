"""From the object in a checkpoint to named tensors: the state dictionary is found, nested containers are flattened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelc.errors import BadFileError
from modelc.formats.torch_globals import TensorView
from modelc.ir import JSON

# Containers may be shared, so that a small pickle can stand for an endless tree.
MAX_DEPTH = 16
MAX_NODES = 1 << 20

# Under these keys a training run keeps the weights, beside the optimizer's state; the first wins.
_STATE_KEYS = ("state_dict", "model_state_dict", "model", "module")
_BARE_NAME = "tensor"  # of a checkpoint that is a tensor and nothing else


def flatten(root: Any, path: Path) -> tuple[dict[str, JSON], dict[str, TensorView]]:
    """The plain values and the tensors of a checkpoint.

    Args:
        root: What the checkpoint's pickle stands for.
        path: The file, for messages.

    Returns:
        Values of JSON types that stand beside the state dictionary (an epoch, the model's arguments), and tensors by
        name. Names of nested tensors are joined with dots; places in a list are numbers.

    Raises:
        BadFileError: Nested too deeply, too many values, or two tensors of one name.
    """
    walk = _Walk(path)
    metadata: dict[str, JSON] = {}
    for _ in range(MAX_DEPTH):
        key = _state_key(root, walk)
        if key is None:
            break
        for other, value in root.items():
            plain = walk.plain(value, 0) if other != key and type(other) is str and other else None
            if plain is not None:
                metadata[other] = plain
        root = root[key]
    walk.tensors_of(root, None, 0)
    return metadata, walk.found


def _state_key(root: Any, walk: _Walk) -> str | None:
    """The key under which the state dictionary is; None where `root` is one itself."""
    if type(root) is not dict or any(isinstance(value, TensorView) for value in root.values()):
        return None
    for key in _STATE_KEYS:
        if isinstance(root.get(key), dict) and walk.has_tensors(root[key], 0):
            return key
    return None


class _Walk:
    """A walk over containers that ends whatever they are."""

    def __init__(self, path: Path) -> None:
        self.found: dict[str, TensorView] = {}
        self._path = path
        self._nodes_left = MAX_NODES

    def tensors_of(self, value: Any, name: str | None, depth: int) -> None:
        """Collects the tensors in `value` in `found`."""
        if isinstance(value, TensorView):
            name = _BARE_NAME if name is None else name
            if name in self.found:
                raise BadFileError("two tensors have the same name", path=self._path, tensor=name)
            self.found[name] = value
        for key, inner in self._items(value, depth):
            self.tensors_of(inner, str(key) if name is None else f"{name}.{key}", depth + 1)

    def has_tensors(self, value: Any, depth: int) -> bool:
        """Whether a tensor is anywhere in `value`."""
        return isinstance(value, TensorView) or any(
            self.has_tensors(inner, depth + 1) for _, inner in self._items(value, depth)
        )

    def plain(self, value: Any, depth: int) -> JSON:
        """`value` as JSON; None where something in it has no such form."""
        if isinstance(value, dict | list | tuple):
            items = [(key, self.plain(inner, depth + 1)) for key, inner in self._items(value, depth)]
            if any(inner is None or type(key) not in (str, int) for key, inner in items):
                return None
            return {str(key): inner for key, inner in items} if isinstance(value, dict) else [v for _, v in items]
        if type(value) is int:
            return value if abs(value) < 1 << 64 else None
        return value if type(value) in (str, bool, float) else None

    def _items(self, value: Any, depth: int) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict | list | tuple):
            return []
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        self._nodes_left -= len(items)
        if depth > MAX_DEPTH or self._nodes_left < 0:
            expected = f"at most {MAX_DEPTH} levels and {MAX_NODES} values"
            raise BadFileError("the checkpoint is nested too deeply", path=self._path, expected=expected)
        return items
