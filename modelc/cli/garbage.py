"""When Python looks for objects that nothing uses: hardly while a server starts, and never among what stays.

Imports and loading make 130,000 objects that live as long as the process. With Python's own thresholds, a start spends
a tenth of its time looking at them, and a server stops for 30 ms each time it looks at all of them again.
"""

from __future__ import annotations

import gc

STARTING = 200_000  # objects made until the collector looks
SERVING = (10_000, 10, 10)


def begin() -> None:
    """Let the collector rest, but for work that makes very much."""
    gc.set_threshold(STARTING)
    gc.enable()


def collections() -> int:
    """How often the collector has run."""
    return sum(generation["collections"] for generation in gc.get_stats())


def settle(collections_before: int) -> None:
    """Take what there is now as what stays, and collect what comes from now on.

    Args:
        collections_before: What `collections` said when the work began: where there have been more, as after compiling
            kernels, there is garbage, which is looked for first.
    """
    if collections() > collections_before:
        gc.collect()
    gc.freeze()
    gc.set_threshold(*SERVING)
