"""The 16 values that the codes of iq4_nl and iq4_xs stand for, as ggml defines them."""

from __future__ import annotations

import numpy as np

from modelc.layout.loop_compiler import inlined
from modelc.layout.words import Words

CODEBOOK = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)

_BYTES = np.array(CODEBOOK, np.int64) & 255


@inlined
def look_up(words: Words) -> Words:
    """Replaces every code by its value, a signed byte."""
    return (
        _look_up(words[0]),
        _look_up(words[1]),
        _look_up(words[2]),
        _look_up(words[3]),
        _look_up(words[4]),
        _look_up(words[5]),
        _look_up(words[6]),
        _look_up(words[7]),
    )


@inlined
def _look_up(word: int) -> int:
    value: int = (
        _BYTES[word & 15] | _BYTES[word >> 8 & 15] << 8 | _BYTES[word >> 16 & 15] << 16 | _BYTES[word >> 24 & 15] << 24
    )
    return value
