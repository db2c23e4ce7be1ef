"""The sampler of one request: keeps the counts that penalties need, and calls the compiled `sample`."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from modelc.constraints import Automaton
from modelc.errors import BadFileError
from modelc.kernels import env
from modelc.runtime.memory import allocate
from modelc.runtime.repetition import RepetitionPenalty
from modelc.runtime.sampling import Sampling
from modelc.text import Tokenizer

Compiled = Callable[..., tuple[int, ...]]


class Workspace:
    """What all samplers of an engine share, one at a time: compiled functions, the working copy, the candidates.

    Args:
        compiled: gives a compiled function by its name in the catalogue.
        tokenizer: the model's.
        vocab_size: its logits.
    """

    def __init__(self, compiled: Callable[[str], Compiled], tokenizer: Tokenizer, vocab_size: int) -> None:
        self._compiled = compiled
        self._functions = {"sample": compiled("sample")}
        self._lock = threading.Lock()
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.scores = allocate(vocab_size + 64, np.float32)
        self.logits = allocate(vocab_size + 64, np.float32)
        self.candidates = allocate(vocab_size, np.int32)

    def function(self, name: str) -> Compiled:
        """A compiled function of one parameter block: `sample`, or what few requests need."""
        with self._lock:
            if name not in self._functions:
                self._functions[name] = self._compiled(name)
            return self._functions[name]


class Sampler:
    """Draws one request's tokens.

    Attributes:
        seed: the one in use.

    Args:
        workspace: the engine's.
        sampling: what was asked.
        prompt: the prompt's tokens.
        automaton: which tokens may come next, where that is constrained; owned from now on.
    """

    def __init__(
        self, workspace: Workspace, sampling: Sampling, prompt: Sequence[int], automaton: Automaton | None = None
    ) -> None:
        self._workspace = workspace  # owns the memory that the parameter block points to
        self._automaton = automaton
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
        integers[env.SCORES] = workspace.scores.ctypes.data
        is_selective = (
            sampling.mirostat > 0
            or 0.0 < sampling.typical_p < 1.0
            or sampling.top_n_sigma > 0.0
            or sampling.xtc_probability > 0.0
        )
        self._choose = workspace.function("select" if is_selective and sampling.temperature > 0.0 else "sample")
        floats[env.TYPICAL_P] = sampling.typical_p
        floats[env.TOP_N_SIGMA] = sampling.top_n_sigma
        floats[env.XTC_PROBABILITY] = sampling.xtc_probability
        floats[env.XTC_THRESHOLD] = sampling.xtc_threshold
        integers[env.MIROSTAT] = sampling.mirostat
        floats[env.MIROSTAT_MU] = 2.0 * sampling.mirostat_tau
        floats[env.MIROSTAT_TAU] = sampling.mirostat_tau
        floats[env.MIROSTAT_ETA] = sampling.mirostat_eta
        self._dry: RepetitionPenalty | None = None
        if sampling.dry_multiplier > 0.0:
            self._dry = RepetitionPenalty(workspace.function("repeats"), sampling, prompt, workspace.tokenizer)
        integers[env.MASK] = 0 if automaton is None else automaton.mask_address

    @property
    def finished(self) -> bool:
        """Whether nothing may follow any more."""
        return self._automaton is not None and self._automaton.finished

    @property
    def forced(self) -> Sequence[int]:
        """Tokens that will come next whatever the logits are."""
        return () if self._automaton is None else self._automaton.forced

    def allowed(self, tokens: list[int]) -> list[int]:
        """As many of `tokens` as may come next, one after another."""
        return tokens if self._automaton is None else tokens[: self._automaton.allowed(tokens)]

    def next(self, logits: npt.NDArray[np.float32], position: int) -> int:
        """The token at `position` of the sequence, from float32 (vocab_size,) logits; they are left as they are.

        Raises:
            BadFileError: the logits are not finite numbers.
            BadInputError: the constraint has no way on.
        """
        token = self.forced[0] if self.forced else self._draw(logits, position)
        self._note(token)
        return token

    def _draw(self, logits: npt.NDArray[np.float32], position: int) -> int:
        block = self._block
        block[env.LOGITS] = logits.ctypes.data
        block[env.POSITION] = position
        block[env.SEEN], block[env.N_SEEN] = self._seen.ctypes.data, len(self._seen)
        answer = np.array(list(self._counts), np.int64)
        counts = np.array(list(self._counts.values()), np.int64)
        block[env.ANSWER], block[env.COUNTS] = answer.ctypes.data, counts.ctypes.data
        block[env.N_ANSWER] = len(answer)
        if self._dry is not None:
            tokens, values = self._dry.penalties()
            tokens, values = np.append(tokens, self._bias_tokens), np.append(values, self._bias_values)
            block[env.BIAS_TOKENS], block[env.BIAS_VALUES] = tokens.ctypes.data, values.ctypes.data
            block[env.N_BIAS] = len(tokens)
        if self._automaton is not None:
            self._automaton.wait()
        (token,) = self._choose(block.ctypes.data)
        if token < 0:
            raise BadFileError("the model's logits are not finite numbers", hint="its weights are damaged")
        return token

    def _note(self, token: int) -> None:
        if self._automaton is not None:
            self._automaton.advance(token)
        if self._dry is not None:
            self._dry.note(token)
        if self._answer:
            self._counts[token] = self._counts.get(token, 0) + 1
        if self._repetition and token not in self._seen:
            self._seen = np.append(self._seen, token)
