"""The sampler of one request: keeps the counts that penalties need, and calls the compiled `sample`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from modelc.errors import BadFileError
from modelc.kernels import env
from modelc.runtime.memory import allocate
from modelc.runtime.sampling import Sampling

Compiled = Callable[..., tuple[int, ...]]


class Workspace:
    """What all samplers of an engine share, one at a time: the compiled function, the working copy, the candidates."""

    def __init__(self, function: Compiled, vocab_size: int) -> None:
        self.function = function
        self.vocab_size = vocab_size
        self.logits = allocate(vocab_size + 64, np.float32)
        self.candidates = allocate(vocab_size, np.int32)


class Sampler:
    """Draws one request's tokens.

    Attributes:
        seed: the one in use.

    Args:
        workspace: the engine's.
        sampling: what was asked.
        prompt: the prompt's tokens.
    """

    def __init__(self, workspace: Workspace, sampling: Sampling, prompt: Sequence[int]) -> None:
        self._workspace = workspace
        self._repetition = sampling.repetition_penalty != 1.0
        self._answer = bool(sampling.presence_penalty or sampling.frequency_penalty)
        self._seen = np.unique(np.asarray(prompt, np.int64)) if self._repetition else np.zeros(0, np.int64)
        self._counts: dict[int, int] = {}
        self.seed = secrets.randbits(53) if sampling.seed is None else sampling.seed
        self._block = allocate(env.N_PARAMETERS, np.int64)
        integers, floats = self._block, self._block.view(np.float64)
        integers[env.N_VOCAB] = workspace.vocab_size
        integers[env.WORK] = workspace.logits.ctypes.data
        integers[env.CANDIDATES] = workspace.candidates.ctypes.data
        integers[env.TOP_K] = sampling.top_k
        integers[env.SEED] = self.seed
        floats[env.TEMPERATURE] = sampling.temperature
        floats[env.TOP_P] = sampling.top_p
        floats[env.MIN_P] = sampling.min_p
        floats[env.REPETITION] = sampling.repetition_penalty
        floats[env.PRESENCE] = sampling.presence_penalty
        floats[env.FREQUENCY] = sampling.frequency_penalty
        self._bias_tokens = np.array(list(sampling.logit_bias), np.int64)
        self._bias_values = np.array(list(sampling.logit_bias.values()), np.float64)
        integers[env.BIAS_TOKENS] = self._bias_tokens.ctypes.data
        integers[env.BIAS_VALUES] = self._bias_values.ctypes.data
        integers[env.N_BIAS] = len(self._bias_tokens)

    def next(self, logits: npt.NDArray[np.float32], position: int) -> int:
        """The token at `position` of the sequence, from float32 (vocab_size,) logits; they are left as they are."""
        block = self._block
        block[env.LOGITS] = logits.ctypes.data
        block[env.POSITION] = position
        block[env.SEEN], block[env.N_SEEN] = self._seen.ctypes.data, len(self._seen)
        answer = np.array(list(self._counts), np.int64)
        counts = np.array(list(self._counts.values()), np.int64)
        block[env.ANSWER], block[env.COUNTS] = answer.ctypes.data, counts.ctypes.data
        block[env.N_ANSWER] = len(answer)
        (token,) = self._workspace.function(block.ctypes.data)
        if token < 0:
            raise BadFileError("the model's logits are not finite numbers", hint="its weights are damaged")
        self._note(token)
        return token

    def _note(self, token: int) -> None:
        if self._answer:
            self._counts[token] = self._counts.get(token, 0) + 1
        if self._repetition and token not in self._seen:
            self._seen = np.append(self._seen, token)
