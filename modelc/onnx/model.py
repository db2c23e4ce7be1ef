"""A loaded ONNX model: arrays by name in, arrays by name out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from modelc.errors import BadInputError
from modelc.ir import Model
from modelc.kernels.source import Progress
from modelc.onnx.feeds import feeds_of, with_batch
from modelc.onnx.machine import Machine
from modelc.onnx.profile import Profile
from modelc.onnx.session import Session
from modelc.onnx.text_embedding import TextEmbedding
from modelc.onnx.values import DTYPES, F32, Array, Value
from modelc.runtime.loaded import F32 as Floats
from modelc.runtime.loaded import LoadedModel
from modelc.runtime.options import Options
from modelc.runtime.texts import as_ids, check_ids, token_lists

EXAMPLE_SIZE = 128  # for sizes that a graph leaves open


class OnnxModel(LoadedModel):
    """A graph. Calls wait for one another.

    Attributes:
        inputs: what goes in: names, types, shapes.
        outputs: what comes out.
    """

    kind = "an ONNX graph"
    abilities: ClassVar[tuple[str, ...]] = ("infer", "profile")

    def __init__(self, model: Model, options: Options, progress: Progress | None = None) -> None:
        super().__init__(model, options.threads)
        self._machine = Machine(options.threads, options.kernels, progress)
        self._session = Session(model, self._machine)
        self._lock = threading.Lock()
        self._closed = False
        self._profile = Profile()
        self.inputs = self._session.inputs
        self.outputs = self._session.outputs

    def infer(self, values: Any) -> Any:
        """Outputs for inputs.

        Args:
            values: arrays or nested lists by name; for a graph with one input the value alone is enough, and a batch
                of one is put in front where the first dimension is missing.

        Returns:
            Arrays by name where `values` has names or the graph several outputs; else the one output.

        Raises:
            BadInputError: An input is missing, unknown, of a wrong type or shape, or does not fit the graph.
        """
        if isinstance(values, Mapping):
            return self._run(feeds_of(values, self.inputs))
        if len(self.inputs) != 1:
            expected = ", ".join(f"{each.name}: {each}" for each in self.inputs)
            raise BadInputError("the model takes several inputs by name", param="inputs", expected=expected)
        value, alone = with_batch(values, self.inputs[0])
        found = self._run(feeds_of({self.inputs[0].name: value}, self.inputs))
        if alone:
            found = {name: array[0] if _has_batch(array) else array for name, array in found.items()}
        return next(iter(found.values())) if len(found) == 1 else found

    def example_inputs(self, n_inputs: int) -> dict[str, Array]:
        """Ones, `n_inputs` where the first size is open and EXAMPLE_SIZE where another one is."""
        found = {}
        for each in self.inputs:
            open_sizes = (n_inputs, *[EXAMPLE_SIZE] * len(each.shape or ()))
            shape = [size if type(size) is int else open_sizes[d] for d, size in enumerate(each.shape or ())]
            found[each.name] = np.ones(shape, DTYPES.get(each.type or "f32", F32))
        return found

    def _run(self, feeds: Mapping[str, Value]) -> dict[str, Any]:
        with self._lock:
            if self._closed:
                raise BadInputError("the model is closed")
            return self._session.run(feeds)

    def start_profile(self) -> None:
        """Count from now on where the time goes."""
        self._profile = Profile()
        self._session.profile = self._profile

    def profile_report(self) -> str:
        """What `start_profile` counted, by operator and by node."""
        return self._profile.report()

    def close(self) -> None:
        """Free what the model holds."""
        with self._lock:
            self._closed = True
            self._machine.close()


class OnnxEncoder(OnnxModel):
    """A graph of a sentence encoder with its tokenizer."""

    kind = "a sentence encoder as an ONNX graph"
    abilities = ("embed", "hidden", "infer", "profile")
    n_ctx: int

    def __init__(
        self, model: Model, options: Options, progress: Progress | None = None, how: TextEmbedding | None = None
    ) -> None:
        super().__init__(model, options, progress)
        found = how or TextEmbedding.of(model, self.inputs, self.outputs)
        assert found is not None, "whoever makes an encoder has looked"
        self._how = found
        self.n_ctx = min(found.n_ctx, options.max_context or found.n_ctx)

    def embed(self, texts: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> Floats:
        """Embeddings, float32: (dim,) of one text or one list of token ids, (n, dim) of a list of n of either."""
        tokens, alone = token_lists(texts, self.tokenize)
        for ids in tokens:
            check_ids(ids, self.vocab_size, self.n_ctx, "texts")
        vectors = self._how.vectors(tokens, self._run)
        return vectors[0] if alone else vectors

    def hidden(self, ids: Sequence[int]) -> Floats:
        """Last hidden states, float32 (len(ids), dim)."""
        tokens = as_ids(ids)
        check_ids(tokens, self.vocab_size, self.n_ctx)
        if self._how.pooling is None:
            raise self.refusal("hidden")
        return self._how.states(tokens, self._run)


def load_onnx(model: Model, options: Options, progress: Progress | None = None) -> OnnxModel:
    """The graph of a model, ready to run: an encoder where it is one and has a tokenizer."""
    from modelc.formats.onnx_plan import KEY, read_plan

    graph = read_plan(model.metadata[KEY]).graph
    inputs = [each for each in graph.inputs if each.name not in graph.initializers]
    how = TextEmbedding.of(model, inputs, graph.outputs)
    return OnnxModel(model, options, progress) if how is None else OnnxEncoder(model, options, progress, how)


def _has_batch(array: Value) -> bool:
    return isinstance(array, np.ndarray) and array.ndim > 0 and array.shape[0] == 1
