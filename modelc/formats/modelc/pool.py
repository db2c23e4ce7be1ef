"""Work on many tensors by several threads, results in the tensors' order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 8  # hashing and compressing outrun a disk long before that


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`map`, by threads. Only a few results exist at a time, because each may be as large as a model's largest tensor.

    Args:
        function: Called once for each item, from several threads at a time; best when it releases the GIL.
        items: What to work on.

    Yields:
        The results in the order of `items`.
    """
    n_threads = min(MAX_THREADS, _n_cpus())
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _n_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
