"""Log-probabilities: the natural logarithm of the softmax of raw logits, the same bits on every machine.

The sum of exponentials is a kernel's (`kernels/log_softmax.py`); its logarithm is taken in decimal arithmetic, because
the `log` of NumPy and of libm differs between CPUs and systems in the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from math import nan

import numpy as np
import numpy.typing as npt

from modelc.kernels import env
from modelc.runtime.memory import allocate
from modelc.runtime.sampler import Compiled
from modelc.sampling_ranges import MAX_TOP_LOGPROBS

DECIMAL = Context(prec=25)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """How likely a token was.

    Attributes:
        token: its id.
        logprob: natural logarithm of its probability; NaN where the logits are not finite.
        top: the most likely tokens in its place and their log-probabilities, the best first.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class LogProbabilities:
    """Reads log-probabilities from rows of logits. Not thread-safe.

    Args:
        function: the compiled `log_softmax`.
        vocab_size: logits in a row.
    """

    def __init__(self, function: Compiled, vocab_size: int) -> None:
        self._function = function
        self._vocab_size = vocab_size
        self._tokens = allocate(MAX_TOP_LOGPROBS, np.int64)
        self._tail = allocate(16, np.float32)
        self._block = allocate(env.N_RANKED, np.int64)
        self._block[env.RANKED_N] = vocab_size
        self._block[env.RANKED_TAIL] = self._tail.ctypes.data
        self._block[env.RANKED_TOKENS] = self._tokens.ctypes.data

    def of(self, logits: npt.NDArray[np.float32], token: int, top: int = 0) -> TokenLogprob:
        """How likely the softmax of `logits` makes `token`.

        Args:
            logits: float32 (vocab_size,).
            token: its index.
            top: how many of the most likely tokens are wanted beside it, 0 to `MAX_TOP_LOGPROBS`.
        """
        block = self._block
        block[env.RANKED_LOGITS] = logits.ctypes.data
        block[env.RANKED_TOP] = top
        self._function(block.ctypes.data)
        highest, total = (float(value) for value in block.view(np.float64)[[env.RANKED_HIGHEST, env.RANKED_SUM]])
        is_finite = total <= 2 * self._vocab_size  # a sum of numbers up to 1, else of some that are far larger
        normaliser = highest + float(DECIMAL.ln(Decimal(total))) if is_finite else nan
        best = self._tokens[: min(top, self._vocab_size)].tolist()
        return TokenLogprob(
            token,
            float(logits[token]) - normaliser,
            tuple((other, float(logits[other]) - normaliser) for other in best),
        )
