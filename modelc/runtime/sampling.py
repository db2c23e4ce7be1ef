"""What a request asks of the sampler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from modelc.errors import BadInputError

MAX_SEED = (1 << 63) - 1
MAX_STOP_CHARS = 4096  # they are compared with the end of the text at every token


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen, and when to stop.

    Attributes:
        max_tokens: longest answer.
        temperature: divides the logits; 0 is greedy.
        top_k: keep the k most likely tokens; 0 is off.
        top_p: keep the smallest set whose probability exceeds it; 0 and 1 are off.
        min_p: keep tokens at least this probable relative to the most likely one; 0 is off.
        repetition_penalty: divides positive and multiplies negative logits of tokens in prompt and answer; 1 is off.
        presence_penalty: subtracted once from the logits of tokens in the answer.
        frequency_penalty: subtracted for each time that a token is in the answer.
        logit_bias: added to the logits of single tokens.
        seed: of the random draws, 0 to 2^63 - 1; None takes a fresh one.
        stop: strings that end the answer; they are not part of it.
        logprobs: whether chunks tell the log-probabilities of their tokens.
    """

    max_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 0.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False

    def __post_init__(self) -> None:
        """Take a single stop string, or any sequence of them."""
        object.__setattr__(self, "stop", (self.stop,) if isinstance(self.stop, str) else tuple(self.stop))

    def check(self, vocab_size: int) -> None:
        """Raise BadInputError for a value that has no meaning."""
        if sum(map(len, self.stop)) > MAX_STOP_CHARS:
            got = f"{sum(map(len, self.stop))} characters"
            raise BadInputError("too long", param="stop", expected=f"{MAX_STOP_CHARS} characters in all", got=got)
        for name in _INTEGERS:
            if not isinstance(getattr(self, name), int):
                raise BadInputError("not an integer", param=name, got=repr(getattr(self, name)))
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:  # also refuses NaN
                raise BadInputError("out of range", param=name, expected=f"{low:g} to {high:g}", got=value)
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise BadInputError("out of range", param="seed", expected=f"0 to {MAX_SEED}", got=self.seed)
        for token, bias in self.logit_bias.items():
            if not 0 <= token < vocab_size or not -1e6 <= bias <= 1e6:
                expected = f"tokens below {vocab_size}, biases from -1e6 to 1e6"
                raise BadInputError("out of range", param="logit_bias", expected=expected, got=f"{token}: {bias}")


_INTEGERS = ("max_tokens", "top_k")
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("max_tokens", 0, 1 << 31),
    ("temperature", 0.0, 1000.0),
    ("top_k", 0, 1 << 31),
    ("top_p", 0.0, 1.0),
    ("min_p", 0.0, 1.0),
    ("repetition_penalty", 0.01, 100.0),
    ("presence_penalty", -100.0, 100.0),
    ("frequency_penalty", -100.0, 100.0),
)
