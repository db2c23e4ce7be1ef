"""Which compiled functions a model may ask for, whatever options it is loaded with: what is built ahead of time."""

from __future__ import annotations

from collections.abc import Iterator

from modelc.formats.onnx_plan import KEY as PLAN
from modelc.ir import Model
from modelc.kernels.catalogue import FUNCTIONS
from modelc.models import draft, lower
from modelc.models.lora import STORED_TYPES
from modelc.models.registry import ARCHITECTURES, Lowered
from modelc.program import Builder, Program
from modelc.program.program import LowRank, Weight
from modelc.runtime.engine import shift_name
from modelc.runtime.options import ACTIVATIONS, KV_TYPES

SMALL = 64  # rows and positions: opcodes do not depend on them
ADAPTERS = [LowRank(Weight(dtype, 16, 16, 0), Weight(dtype, 16, 16, 0)) for dtype in STORED_TYPES]  # types alone count


def kernel_names(model: Model) -> list[str]:
    """Names of the catalogue, ascending: the opcodes of all activation formats and K/V types, and what stands by them.

    Raises:
        BadFileError, UnsupportedError: the model cannot be run.
    """
    if PLAN in model.metadata:
        from modelc.onnx import KERNELS

        return sorted(KERNELS)
    if model.architecture not in ARCHITECTURES:
        return []  # echoed, not computed
    names = set(FUNCTIONS)
    for program in _programs(model, lower(model)):
        names.update(program.opcodes, (shift_name(program, layer) for layer in program.kv_layers))
    return sorted(names)


def _programs(model: Model, lowered: Lowered) -> Iterator[Program]:
    """What may be run: the model, with an adapter for every matrix, with rows from outside, and its draft."""
    file = lowered.architecture.file
    matrices = [*file.tensors(lowered.config), *file.optional_tensors(lowered.config)]
    adapted = [lowered.weights.adapted(dict.fromkeys(matrices, adapter)) for adapter in ADAPTERS]
    for activation in ACTIVATIONS.values():
        for kv in KV_TYPES:
            yield lowered.program(_builder(activation, kv))
            if lowered.architecture.kind == "decoder":
                yield from (file.lower(lowered.config, weights, _builder(activation, kv)) for weights in adapted)
                yield lowered.program(_builder(activation, kv, vectors=True))
        if any(map(draft.is_draft_tensor, model.tensors)):
            config, weights = draft.load(model, lowered.weights)
            yield draft.lower(config, weights, _builder(activation, KV_TYPES[0]))


def _builder(activation: str, kv: str, vectors: bool = False) -> Builder:
    return Builder(SMALL, SMALL, 1, SMALL, activation, kv, vectors=vectors)
