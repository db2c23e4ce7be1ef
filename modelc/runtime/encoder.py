"""A loaded sentence encoder: texts to vectors, many texts in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from modelc.ir import Model
from modelc.kernels.source import Progress
from modelc.models import lower
from modelc.runtime.forward import Forward, ForwardModel
from modelc.runtime.loaded import F32
from modelc.runtime.options import Options
from modelc.runtime.pooling import pool
from modelc.runtime.texts import as_ids, check_ids, token_lists

MAX_ROWS = 512  # of a pass: more do not make it faster


class Encoder(ForwardModel):
    """An encoder. Texts of one call share passes; calls wait for one another.

    Attributes:
        n_ctx: tokens of the longest text.
        dim: numbers of an embedding.
    """

    kind = "a sentence encoder"
    abilities = ("embed", "hidden", "profile")
    n_ctx: int

    def __init__(self, model: Model, options: Options, progress: Progress | None = None) -> None:
        lowered = lower(model)
        super().__init__(model, options.threads)
        config = lowered.config
        self.n_ctx = min(config.n_ctx, options.max_context or config.n_ctx)
        self.vocab_size = config.vocab_size
        self.dim = config.dim
        self._pooling = config.pooling
        self._forward = Forward(lowered, options, max(MAX_ROWS, self.n_ctx), self.n_ctx, progress=progress)

    def embed(self, texts: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> F32:
        """Embeddings, float32: (dim,) of one text or one list of token ids, (n, dim) of a list of n of either.

        Texts get the special tokens that the model expects around them; ids are taken as they are.
        """
        tokens, alone = token_lists(texts, self.tokenize)
        for ids in tokens:
            check_ids(ids, self.vocab_size, self.n_ctx, "texts")
        vectors = np.empty((len(tokens), self.dim), np.float32)
        for first, batch in _batches(tokens, self._forward.max_rows):
            states = self._forward.of_tokens(batch)
            vectors[first : first + len(batch)] = pool(states, [len(ids) for ids in batch], self._pooling)
        return vectors[0] if alone else vectors

    def hidden(self, ids: Sequence[int]) -> F32:
        """Last hidden states, float32 (len(ids), dim)."""
        tokens = as_ids(ids)
        check_ids(tokens, self.vocab_size, self.n_ctx)
        return self._forward.of_tokens([tokens])


def _batches(texts: Sequence[list[int]], max_rows: int) -> Iterator[tuple[int, list[list[int]]]]:
    """Texts side by side, as many as fit into a pass; with the number of the first."""
    first = rows = 0
    for i, ids in enumerate(texts):
        if rows + len(ids) > max_rows:
            yield first, list(texts[first:i])
            first, rows = i, 0
        rows += len(ids)
    yield first, list(texts[first:])
