"""Graphs of sentence encoders: token ids in, hidden states or sentence embeddings out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelc.formats.onnx_plan import Declared
from modelc.ir import Model
from modelc.models.pooling import Pooling, pooling_from_hf
from modelc.onnx.values import DTYPES, Array
from modelc.runtime.loaded import F32
from modelc.runtime.pooling import pool

INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
STATES = ("last_hidden_state", "token_embeddings", "hidden_states")
SENTENCES = ("sentence_embedding", "sentence_embeddings", "embeddings")
MAX_ROWS = 512  # tokens of a pass: more do not make it faster
MAX_CTX = 512  # where nothing says how long texts may be


@dataclass(frozen=True, slots=True)
class TextEmbedding:
    """How texts go through a graph.

    Attributes:
        inputs: those that the graph has.
        output: the output that is used.
        pooling: how hidden states become one vector; None where the output is a vector already.
        n_ctx: tokens of the longest text.
    """

    inputs: tuple[Declared, ...]
    output: str
    pooling: Pooling | None
    n_ctx: int

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Declared], outputs: Sequence[Declared]) -> TextEmbedding | None:
        """None for a graph that is no encoder, or has no tokenizer beside it."""
        names = [each.name for each in inputs]
        if "tokenizer" not in model.metadata or "input_ids" not in names or not set(names) <= set(INPUTS):
            return None
        by_name = {each.name: each for each in outputs}
        sentence = next((name for name in SENTENCES if name in by_name), None)
        if sentence is not None:
            return cls(tuple(inputs), sentence, None, _longest(model))
        states = next((name for name in STATES if name in by_name), None)
        if states is None:
            return None
        return cls(tuple(inputs), states, pooling_from_hf(model), _longest(model))

    def vectors(self, texts: Sequence[list[int]], run: Callable[[Mapping[str, Any]], Mapping[str, Array]]) -> F32:
        """Embeddings of token lists, float32 (texts, dim). Texts of one length share passes: no padding, no masks."""
        found: dict[int, Array] = {}
        by_length: dict[int, list[int]] = {}
        for i, ids in enumerate(texts):
            by_length.setdefault(len(ids), []).append(i)
        for length, members in by_length.items():
            step = max(MAX_ROWS // length, 1)
            for start in range(0, len(members), step):
                batch = members[start : start + step]
                states = self._states([texts[i] for i in batch], run)
                found.update(zip(batch, self._pooled(states, length), strict=True))
        return np.stack([found[i] for i in range(len(texts))]).astype(np.float32)

    def states(self, ids: Sequence[int], run: Callable[[Mapping[str, Any]], Mapping[str, Array]]) -> F32:
        """Hidden states of one text, float32 (tokens, dim)."""
        states: F32 = self._states([list(ids)], run)[0].astype(np.float32)
        return states

    def _states(self, batch: list[list[int]], run: Callable[[Mapping[str, Any]], Mapping[str, Array]]) -> Array:
        ids = np.array(batch)
        values = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(ids.shape[1]), ids.shape),
        }
        feeds = {each.name: values[each.name].astype(DTYPES[each.type or "i64"]) for each in self.inputs}
        return run(feeds)[self.output]

    def _pooled(self, states: Array, length: int) -> Array:
        if self.pooling is None:
            return states
        return pool(states.astype(np.float32).reshape(-1, states.shape[-1]), [length] * len(states), self.pooling)


def _longest(model: Model) -> int:
    """Tokens of the longest text, from the configurations beside the model."""
    limits = [
        section.get(key)
        for name, key in (("config", "max_position_embeddings"), ("tokenizer_config", "model_max_length"))
        if isinstance(section := model.metadata.get(name), dict)
    ]
    sane = [limit for limit in limits if type(limit) is int and 0 < limit < 1 << 20]
    return min(sane, default=MAX_CTX)
