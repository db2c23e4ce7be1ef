"""The parallel loops over whole tensors, around a type's functions on single blocks.

A type's file (`q4_0.py`, `f16.py`, …) has these compiled functions; this is where they get their shapes:

    to_lane(blocks, block, lanes, record, lane)    one block of one row into its lane of a record
    from_lane(lanes, record, lane, blocks, block)  the inverse; the block's bytes are zero before
    dequantize(blocks, block, values, at)          one block into floats
    quantize(values, at, blocks, block)            floats into one block; types that models are quantized to

`block`, `record` and `at` are byte offsets. Work is split over groups of rows or over blocks, and no value depends
on the split.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from modelc.layout.loop_cache import Step
from modelc.layout.parallel import parallel_loop
from modelc.layout.table import LANES

if TYPE_CHECKING:
    from modelc.layout.words import Buffer


@functools.cache
def to_lanes_loop(dtype_name: str) -> Callable[..., None]:
    """`loop(blocks, block_bytes, lanes, record_bytes, n_blocks, n_groups)` for the type; n_blocks is of one row."""

    def make_step() -> Step:
        to_lane = _block_functions(dtype_name).to_lane

        def step(
            blocks: Buffer, block_bytes: int, lanes: Buffer, record_bytes: int, n_blocks: int, start: int, stop: int
        ) -> None:
            for group in range(start, stop):
                for column in range(n_blocks):
                    record = (group * n_blocks + column) * record_bytes
                    for lane in range(LANES):
                        block = ((group * LANES + lane) * n_blocks + column) * block_bytes
                        to_lane(blocks, block, lanes, record, lane)

        return step

    return parallel_loop(f"{dtype_name}.to_lanes", make_step)


@functools.cache
def from_lanes_loop(dtype_name: str) -> Callable[..., None]:
    """`loop(lanes, record_bytes, blocks, block_bytes, n_blocks, n_groups)`, the inverse of `to_lanes_loop`."""

    def make_step() -> Step:
        from_lane = _block_functions(dtype_name).from_lane

        def step(
            lanes: Buffer, record_bytes: int, blocks: Buffer, block_bytes: int, n_blocks: int, start: int, stop: int
        ) -> None:
            for group in range(start, stop):
                for column in range(n_blocks):
                    record = (group * n_blocks + column) * record_bytes
                    for lane in range(LANES):
                        block = ((group * LANES + lane) * n_blocks + column) * block_bytes
                        from_lane(lanes, record, lane, blocks, block)

        return step

    return parallel_loop(f"{dtype_name}.from_lanes", make_step)


@functools.cache
def dequantize_loop(dtype_name: str) -> Callable[..., None]:
    """`loop(blocks, block_bytes, values, values_bytes, 1, n_blocks)` for the type; n_blocks is of the whole tensor."""

    def make_step() -> Step:
        dequantize = _block_functions(dtype_name).dequantize

        def step(
            blocks: Buffer, block_bytes: int, values: Buffer, values_bytes: int, n_blocks: int, start: int, stop: int
        ) -> None:
            for index in range(start * n_blocks, stop * n_blocks):
                dequantize(blocks, index * block_bytes, values, index * values_bytes)

        return step

    return parallel_loop(f"{dtype_name}.dequantize", make_step)


@functools.cache
def quantize_loop(dtype_name: str) -> Callable[..., None]:
    """`loop(values, values_bytes, blocks, block_bytes, 1, n_blocks)`; n_blocks is of the whole tensor."""

    def make_step() -> Step:
        quantize = _block_functions(dtype_name).quantize

        def step(
            values: Buffer, values_bytes: int, blocks: Buffer, block_bytes: int, n_blocks: int, start: int, stop: int
        ) -> None:
            for index in range(start * n_blocks, stop * n_blocks):
                quantize(values, index * values_bytes, blocks, index * block_bytes)

        return step

    return parallel_loop(f"{dtype_name}.quantize", make_step)


def _block_functions(dtype_name: str) -> Any:
    return import_module(f"{__package__}.{dtype_name}")
