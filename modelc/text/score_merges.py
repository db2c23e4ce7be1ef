"""SentencePiece's byte-pair merging: the pair that makes the best token first, the leftmost of equals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

_LOW = (1 << 32) - 1


class ScoreMerges:
    """Merging by the scores of tokens, in O(n log n).

    Args:
        tokens: Id of each text that merging may give.
        scores: Score of each id, the higher the better.
    """

    def __init__(self, tokens: Mapping[str, int], scores: Sequence[float]) -> None:
        ranks = np.unique(-np.asarray(scores, np.float64), return_inverse=True)[1]
        self._ranks = dict(zip(tokens, ranks[list(tokens.values())].tolist(), strict=True))

    def apply(self, text: str) -> list[str]:
        """Pieces of `text`: tokens, and characters that are none."""
        ranks, parts, n = self._ranks, list(text), len(text)
        queue = [
            rank << 32 | at
            for at, (left, right) in enumerate(pairwise(text))
            if (rank := ranks.get(left + right)) is not None
        ]
        heapify(queue)
        after = list(range(1, n + 1))
        before = list(range(-1, n - 1))
        while queue:
            entry = heappop(queue)
            at, rank = entry & _LOW, entry >> 32
            right = after[at]
            # An entry is stale when a side of its pair has been merged away or has grown since.
            if right == n or not parts[at] or ranks.get(parts[at] + parts[right]) != rank:
                continue
            whole = parts[at] = parts[at] + parts[right]
            parts[right] = ""
            beyond = after[at] = after[right]
            if beyond < n:
                before[beyond] = at
                follows = ranks.get(whole + parts[beyond])
                if follows is not None:
                    heappush(queue, follows << 32 | at)
            ahead = before[at]
            if ahead >= 0:
                leads = ranks.get(parts[ahead] + whole)
                if leads is not None:
                    heappush(queue, leads << 32 | ahead)
        return [part for part in parts if part]
