"""Proposals of a draft model that lies in the same file as the model that checks them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelc.ir import Model
from modelc.kernels.source import KernelSource, Progress
from modelc.models import draft
from modelc.models.weights import Weights
from modelc.program import Builder
from modelc.runtime.engine import Engine, Rows

UNKNOWN = -1


class DraftProposer:
    """Proposes, token by token, what the draft finds most likely behind the last one.

    One for all requests of a model. The draft sees one token alone, so what follows it is computed once and kept: a
    chain of known tokens costs nothing. Its engine has one thread; a second team would take the first one's cores.

    Args:
        model: where the draft's tensors are.
        target: the weights of the model that checks the proposals; they lend the embedding.
        activation: `a8` or `a16`, for block-quantized weights.
        objects: where compiled opcodes come from.
        progress: told about each opcode that has to be compiled.

    Raises:
        BadFileError: a tensor of the draft is missing or has the wrong shape.
        UnsupportedError: a tensor has a type that is not known.
    """

    def __init__(
        self, model: Model, target: Weights, activation: str, objects: KernelSource, progress: Progress | None = None
    ) -> None:
        config, self._weights = draft.load(model, target)
        program = draft.lower(config, self._weights, Builder(1, 1, n_threads=1, n_ctx=1, activation=activation))
        self._engine = Engine(program, self._weights.base, n_slots=1, n_pages=0, objects=objects, progress=progress)
        self._next = np.full(config.vocab_size, UNKNOWN, np.int32)

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        """n tokens that may follow the last of `tokens`."""
        chain = [tokens[-1]]
        for _ in range(n):
            chain.append(self._after(chain[-1]))
        return chain[1:]

    def forget(self) -> None:
        """Nothing depends on where a sequence's tokens are."""

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

    def _after(self, token: int) -> int:
        if self._next[token] == UNKNOWN:
            self._next[token] = self._engine.run([Rows(0, 0, [token], 1)])[0].argmax()
        return int(self._next[token])
