"""What a request asks of the sampler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from modelc.constraints import Constraint
from modelc.errors import BadInputError, did_you_mean
from modelc.sampling_ranges import MAX_BIAS, MAX_BREAKER_CHARS, MAX_BREAKERS, MAX_SEED, MAX_STOP_CHARS, RANGES


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen, and when to stop.

    Attributes:
        max_tokens: longest answer.
        temperature: divides the logits; 0 is greedy.
        top_k: keep the k most likely tokens; 0 is off.
        top_p: keep the smallest set whose probability exceeds it; 0 and 1 are off.
        min_p: keep tokens at least this probable relative to the most likely one; 0 is off.
        typical_p: keep the tokens whose surprise is nearest to the mean one, until their probability exceeds this; 0
            and 1 are off.
        top_n_sigma: keep tokens within so many standard deviations of the highest logit; 0 and -1 are off.
        xtc_probability: how often all tokens that reach `xtc_threshold`, but the least likely of them, are left out.
        xtc_threshold: see `xtc_probability`; above 0.5 it is off.
        mirostat: 1 or 2: that version of Mirostat chooses, in place of all that cuts by rank or probability; 0 is off.
        mirostat_tau: its surprise in bits.
        mirostat_eta: how fast it learns.
        repetition_penalty: divides positive and multiplies negative logits of tokens in prompt and answer; 1 is off.
        presence_penalty: subtracted once from the logits of tokens in the answer.
        frequency_penalty: subtracted for each time that a token is in the answer.
        dry_multiplier: of the penalty for tokens that go on with a repetition; 0 is off.
        dry_base: the penalty grows by this with each token of the repetition.
        dry_allowed_length: longest repetition without a penalty.
        dry_penalty_last_n: tokens in which repetitions are looked for; -1 are all, 0 is off.
        dry_sequence_breakers: strings that no repetition goes across.
        logit_bias: added to the logits of single tokens.
        seed: of the random draws, 0 to 2^63 - 1; None takes a fresh one.
        stop: strings that end the answer; they are not part of it.
        constraint: the language of the answer; None is any text.
        logprobs: whether chunks tell the log-probabilities of their tokens.
        top_logprobs: how many of the most likely tokens they tell beside each, 0 to 20.
        prompt_logprobs: whether a chunk before the answer tells them of the prompt's tokens.
    """

    max_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 0.0
    min_p: float = 0.0
    typical_p: float = 0.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    logit_bias: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    seed: int | None = None
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    prompt_logprobs: bool = False

    def __post_init__(self) -> None:
        """Take single strings, or any sequences of them."""
        for name in ("stop", "dry_sequence_breakers"):
            value = getattr(self, name)
            texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else None
            if texts is None or not all(isinstance(text, str) for text in texts):
                raise BadInputError("wrong type", param=name, got=repr(value), expected="a string, or strings")
            object.__setattr__(self, name, texts)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Sampling:
        """From keywords.

        Raises:
            BadInputError: one that does not exist, or texts of another type.
        """
        known = {each.name for each in fields(cls)}
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            raise BadInputError("no such option", param=unknown, hint=did_you_mean(unknown, known))
        return cls(**given)

    def check(self, vocab_size: int) -> None:
        """Raise BadInputError for a value that has no meaning."""
        if sum(map(len, self.stop)) > MAX_STOP_CHARS:
            got = f"{sum(map(len, self.stop))} characters"
            raise BadInputError("too long", param="stop", expected=f"{MAX_STOP_CHARS} characters in all", got=got)
        breakers = self.dry_sequence_breakers
        if len(breakers) > MAX_BREAKERS or any(len(text) > MAX_BREAKER_CHARS for text in breakers):
            expected = f"at most {MAX_BREAKERS} of {MAX_BREAKER_CHARS} characters"
            raise BadInputError("too many or too long", param="dry_sequence_breakers", expected=expected)
        for name, allowed in RANGES.items():
            value: Any = getattr(self, name)
            is_right = isinstance(value, Integral if allowed.is_integer else Real)
            if not is_right:
                expected = "an integer" if allowed.is_integer else "a number"
                raise BadInputError("wrong type", param=name, got=repr(value), expected=expected)
            if not allowed.low <= value <= allowed.high:  # also refuses NaN
                expected = f"{allowed.low:.10g} to {allowed.high:.10g}"
                raise BadInputError("out of range", param=name, expected=expected, got=value)
        if self.seed is not None and not isinstance(self.seed, Integral):
            raise BadInputError("wrong type", param="seed", got=repr(self.seed), expected="an integer")
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise BadInputError("out of range", param="seed", expected=f"0 to {MAX_SEED}", got=self.seed)
        if not isinstance(self.logit_bias, Mapping) or not all(
            isinstance(token, Integral) and isinstance(bias, Real) for token, bias in self.logit_bias.items()
        ):
            expected = "token ids with numbers"
            raise BadInputError("wrong type", param="logit_bias", got=repr(self.logit_bias)[:80], expected=expected)
        for token, bias in self.logit_bias.items():
            if not 0 <= token < vocab_size or not -MAX_BIAS <= bias <= MAX_BIAS:
                expected = f"tokens below {vocab_size}, biases from {-MAX_BIAS:g} to {MAX_BIAS:g}"
                raise BadInputError("out of range", param="logit_bias", expected=expected, got=f"{token}: {bias}")
