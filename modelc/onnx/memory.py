"""Memory of intermediate values that is used again: the blocks that the arrays of a recorded run live in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from modelc.onnx.values import Array

ALIGNMENT = 64
LOOSEST = 2  # a free block serves a request of at least one part in this many of its size


class Pool:
    """Blocks of memory; one is free again when no value lies in it.

    Attributes:
        total_bytes: of all blocks.
    """

    def __init__(self) -> None:
        self.total_bytes = 0
        self._free: list[Array] = []
        self._used: dict[int, Array] = {}  # blocks by identity: all views of one have it as their base
        self._values: dict[int, int] = {}  # how many values lie in each
        self._fresh: list[int] = []

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array without content, at a multiple of 64 bytes."""
        n_bytes = math.prod(shape) * dtype.itemsize
        size = max(-(-n_bytes // ALIGNMENT), 1) * ALIGNMENT + ALIGNMENT
        fitting = [i for i, block in enumerate(self._free) if size <= block.nbytes <= LOOSEST * size]
        if fitting:
            block = self._free.pop(min(fitting, key=lambda i: self._free[i].nbytes))
        else:
            block = np.empty(size, np.uint8)
            self.total_bytes += size
        self._used[id(block)] = block
        self._fresh.append(id(block))
        start = -block.__array_interface__["data"][0] % ALIGNMENT
        array: Array = block[start : start + n_bytes].view(dtype).reshape(shape)
        return array

    def hold(self, array: Array) -> None:
        """One more value is `array` or a view of it."""
        key = self._block_of(array)
        if key is not None:
            self._values[key] = self._values.get(key, 0) + 1

    def release(self, array: Array) -> None:
        """One value less."""
        key = self._block_of(array)
        if key is not None:
            self._values[key] -= 1
            self._free_unused(key)

    def sweep(self) -> None:
        """Free what was allocated since the last call and holds no value."""
        for key in self._fresh:
            self._free_unused(key)
        self._fresh.clear()

    def _free_unused(self, key: int) -> None:
        if not self._values.get(key) and key in self._used:
            self._values.pop(key, None)
            self._free.append(self._used.pop(key))

    def _block_of(self, array: Any) -> int | None:
        while array is not None:
            if id(array) in self._used:
                return id(array)
            array = getattr(array, "base", None)
        return None
