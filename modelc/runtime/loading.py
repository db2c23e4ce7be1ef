"""From a file to a model that is ready, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from modelc.errors import located
from modelc.formats import open_model
from modelc.formats.onnx_plan import KEY as PLAN
from modelc.ir import Model
from modelc.kernels.source import KernelSource, Progress
from modelc.models.registry import ARCHITECTURES
from modelc.runtime.echo import EchoModel
from modelc.runtime.encoder import Encoder
from modelc.runtime.loaded import LoadedModel
from modelc.runtime.mlp import Mlp
from modelc.runtime.model import LanguageModel
from modelc.runtime.options import Options
from modelc.runtime.threads import default_threads

# The kind of model that an architecture makes.
KINDS: dict[str, Callable[[Model, Options, Progress | None], LoadedModel]] = {
    "decoder": LanguageModel,
    "encoder": Encoder,
    "mlp": Mlp,
}


def load(
    path: str | PathLike[str],
    threads: int | None = None,
    activations: str = "int8",
    kv: str | None = None,
    max_context: int | None = None,
    anchor_tokens: int = 0,
    kv_memory: int | None = None,
    gamma: int = 0,
    kv_hot_window: int = 64,
    progress: Progress | None = None,
    kernels: KernelSource | None = None,
) -> LoadedModel:
    """Load a model of any kind for inference.

    Args:
        path: A `.modelc`, used in place, or another weights file, repacked in memory.
        threads: Size of the team; None takes the physical cores that the process may use.
        activations: What block-quantized weights are multiplied with: `int8`, or `int16` (slower, nearly exact).
        kv: Type of keys and values: `f16` (None), `f32`, `int8`, or `mixed`: a query reads the newest positions in
            float32 and older ones in int8.
        max_context: Longest sequence. With it, a full context loses its oldest tokens and the answer goes on; without
            it, the answer ends at the context the model was trained for.
        anchor_tokens: First tokens of a sequence that are never dropped.
        kv_memory: Bytes for keys and values; None takes a quarter of the memory at most.
        gamma: Tokens that speculation proposes for one pass; 0 is off. Answers are the same with and without.
        kv_hot_window: Positions that `mixed` reads in float32, the query's own among them.
        progress: Told (done, total, name) about each opcode that has to be compiled.
        kernels: Where compiled functions come from; None for the compiler and its cache.

    Raises:
        BadFileError, UnsupportedError: The file, or what it asks for, cannot be run.
        BadInputError: An argument is out of range.
    """
    options = Options(
        default_threads() if threads is None else threads,
        activations,
        kv or "f16",
        max_context,
        anchor_tokens,
        kv_memory,
        gamma,
        kv_hot_window,
        kernels,
    )
    options.check()
    with located(path):
        return loaded_model(open_model(path), options, progress)


def loaded_model(model: Model, options: Options, progress: Progress | None = None) -> LoadedModel:
    """Make `model` ready, as the kind that it is; one that cannot be run answers with its input.

    Raises:
        BadFileError, UnsupportedError: The model's architecture is known, and this model has not what it needs.
    """
    if PLAN in model.metadata:
        from modelc.onnx import load_onnx

        return load_onnx(model, options, progress)
    architecture = ARCHITECTURES.get(model.architecture)
    if architecture is None:
        return EchoModel(model, options.threads)
    return KINDS[architecture.kind](model, options, progress)
