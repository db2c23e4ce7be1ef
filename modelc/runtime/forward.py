"""An engine without a scheduler: texts or vectors go through the model in one call, and calls wait for one another."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from modelc.errors import BusyError
from modelc.kernels.source import Progress
from modelc.models.registry import Lowered
from modelc.program import Builder
from modelc.runtime.engine import Engine, Rows
from modelc.runtime.loaded import F32, LoadedModel
from modelc.runtime.options import ACTIVATIONS, Options
from modelc.runtime.profile import report


class Forward:
    """A model's layers as a function of batches. Thread-safe.

    Attributes:
        max_rows: rows in the largest batch.
        lowered: the model.

    Args:
        lowered: the model.
        options: threads and number formats.
        max_rows: rows in the largest batch.
        n_ctx: rows of the longest sequence.
        vectors: whether rows come from outside, where the model has an embedding for tokens.
        progress: told about each opcode that has to be compiled.
    """

    def __init__(
        self,
        lowered: Lowered,
        options: Options,
        max_rows: int,
        n_ctx: int,
        *,
        vectors: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.max_rows = max_rows
        activation = ACTIVATIONS[options.activations]
        threads = 1 if vectors else options.threads
        builder = Builder(max_rows, max_rows, threads, n_ctx, activation, options.kv, vectors=vectors)
        program = lowered.program(builder)
        self.lowered = lowered  # keeps the file mapped
        self._engine = Engine(program, lowered.weights.base, 1, 1, options.kernel_source, progress)
        self._lock = threading.Lock()
        self._closed = False

    def of_tokens(self, sequences: Sequence[Sequence[int]]) -> F32:
        """What comes of whole sequences of token ids, together at most `max_rows`: float32 (tokens, outputs)."""
        with self._lock:
            self._check_open()
            return self._engine.run([Rows(0, 0, tokens, len(tokens)) for tokens in sequences]).copy()

    def of_vectors(self, vectors: F32) -> F32:
        """What comes of float32 (n, columns) rows, n at most `max_rows`: float32 (n, outputs)."""
        with self._lock:
            self._check_open()
            return self._engine.run_vectors(vectors).copy()

    def start_profile(self) -> None:
        """Count from now on where the time goes."""
        with self._lock:
            self._engine.start_profile()

    def profile_report(self) -> str:
        """What was counted."""
        return report(self._engine.program, *self._engine.profile())

    def close(self) -> None:
        """Free the engine, after the call that runs."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.close()

    def _check_open(self) -> None:
        if self._closed:
            raise BusyError("the model is closed", hint="load it again")


class ForwardModel(LoadedModel):
    """A kind of model that is one `Forward`, which its constructor makes."""

    _forward: Forward

    def start_profile(self) -> None:
        """Count from now on where the time goes."""
        self._forward.start_profile()

    def profile_report(self) -> str:
        """What `start_profile` counted: time by kind of instruction and by layer; also of a model that is closed."""
        return self._forward.profile_report()

    def close(self) -> None:
        """Free what the model holds."""
        self._forward.close()
