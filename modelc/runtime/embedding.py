"""Embeddings of a decoder: the last hidden state of a text's last token, made among all other requests."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from modelc.errors import BusyError
from modelc.runtime.generation import Chunk, Request
from modelc.runtime.loaded import F32
from modelc.runtime.log_probability import LogProbabilities
from modelc.runtime.sampler import Sampler
from modelc.runtime.sampling import Sampling
from modelc.runtime.scheduler import Scheduler
from modelc.text import StreamDecoder


class EmbeddingRequest(Request):
    """A prompt without an answer: it takes the hidden state behind its last token."""

    wants_hidden = True

    def __init__(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        sampler: Sampler,
        end_ids: frozenset[int],
        decoder: StreamDecoder,
        log_probabilities: LogProbabilities,
    ) -> None:
        self._ended = threading.Event()
        self._vector: F32 | None = None
        super().__init__(
            prompt, sampling, sampler, end_ids, decoder, log_probabilities, lambda chunk: self._ended.set()
        )

    def accept(self, logits: F32, rows: Sequence[int], limit: int | None) -> int:
        """Keep the last of `logits`, which are hidden states, and end."""
        self._vector = logits[-1].copy()
        self.finish(Chunk("", (), "length"))
        return 0

    def vector(self) -> F32:
        """The hidden state; waits for it.

        Raises:
            ModelcError: It failed, or the model was closed.
        """
        self._ended.wait()
        if self.generation.error is not None:
            raise self.generation.error
        if self._vector is None:
            raise BusyError("the model was closed before the embedding was made")
        return self._vector


def embed_all(requests: Sequence[EmbeddingRequest], scheduler: Scheduler) -> F32:
    """Run requests, all with the same adapters, and wait for them: float32 (requests, dim)."""
    try:
        with scheduler.pinned():
            for request in requests:
                scheduler.submit(request)
        return np.stack([request.vector() for request in requests])
    finally:
        for request in requests:  # without effect on those that have ended
            request.generation.cancel()
