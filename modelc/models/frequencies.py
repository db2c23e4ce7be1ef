"""RoPE frequencies and their scaling in decimal arithmetic: libm differs between systems in the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

DIGITS = 40
PI = Decimal("3.141592653589793238462643383279502884197169")


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How frequencies are changed for contexts longer than the one they were trained for.

    Attributes:
        kind: `none`, `linear`, `llama3`, `yarn` or `longrope`.
        factor: how many times longer.
        original_context: positions before.
        low_freq_factor: llama3: wavelengths above original_context / low_freq_factor are scaled.
        high_freq_factor: llama3: wavelengths below original_context / high_freq_factor are not.
        beta_fast: yarn: dimensions that turn more often over the original context are not scaled.
        beta_slow: yarn: those that turn less often are scaled.
        attention_factor: yarn, longrope: on rotated queries and keys; None for 0.1 ln(factor) + 1, and for
            sqrt(1 + ln(factor) / ln(original_context)).
        short_divisors: longrope: of each frequency, for contexts up to the original one.
        long_divisors: longrope: for longer ones.
    """

    kind: str = "none"
    factor: float = 1.0
    original_context: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    short_divisors: tuple[float, ...] = ()
    long_divisors: tuple[float, ...] = ()

    @property
    def magnitude(self) -> float:
        """What rotated queries and keys are multiplied with."""
        if self.kind not in ("yarn", "longrope"):
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.factor <= 1:
            return 1.0
        with localcontext() as context:
            context.prec = DIGITS
            stretch = Decimal(self.factor).ln()
            if self.kind == "yarn":
                return float(Decimal("0.1") * stretch + 1)
            return float((1 + stretch / Decimal(self.original_context).ln()).sqrt())

    def divisors(self, n_ctx: int) -> npt.NDArray[np.float32] | None:
        """What longrope divides the frequencies of a context of `n_ctx` positions by, float32; None: nothing."""
        if self.kind != "longrope":
            return None
        return np.array(self.long_divisors if n_ctx > self.original_context else self.short_divisors, np.float32)


def rope_frequencies(
    columns: int, theta: float, scaling: RopeScaling | None = None, divisors: npt.NDArray[np.float32] | None = None
) -> npt.NDArray[np.float64]:
    """theta^(-2i / columns) for i < columns / 2, scaled; float64 (columns / 2,).

    Args:
        columns: those of a head that are rotated.
        theta: base.
        scaling: how they are changed.
        divisors: of each frequency (GGUF's `rope_freqs.weight`), float32 (columns / 2,).

    Source: RoFormer (arXiv 2104.09864); YaRN (arXiv 2309.00071); LongRoPE (arXiv 2402.13753); the llama3 rule of Llama
        3.1's configuration.
    """
    with localcontext() as context:
        context.prec = DIGITS
        base = Decimal(theta)
        plain = [base ** (Decimal(-2 * i) / Decimal(columns)) for i in range(columns // 2)]
        if divisors is not None:
            plain = [f / Decimal(float(d)) for f, d in zip(plain, divisors, strict=True)]
        rule = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}.get(scaling.kind if scaling else "none")
        if rule is not None and scaling is not None:
            plain = rule(plain, scaling, columns, base)
        return np.array([float(f) for f in plain])


def _linear(plain: list[Decimal], s: RopeScaling, columns: int, base: Decimal) -> list[Decimal]:
    return [f / Decimal(s.factor) for f in plain]


def _llama3(plain: list[Decimal], s: RopeScaling, columns: int, base: Decimal) -> list[Decimal]:
    low, high, factor = Decimal(s.low_freq_factor), Decimal(s.high_freq_factor), Decimal(s.factor)
    scaled = []
    for f in plain:
        turns = Decimal(s.original_context) * f / (2 * PI)  # over the original context
        smooth = min(max((turns - low) / (high - low), Decimal(0)), Decimal(1))
        scaled.append((1 - smooth) * f / factor + smooth * f)
    return scaled


def _yarn(plain: list[Decimal], s: RopeScaling, columns: int, base: Decimal) -> list[Decimal]:
    def dimension(turns: float) -> Decimal:
        """Where a dimension turns so often over the original context."""
        return columns * (Decimal(s.original_context) / (Decimal(turns) * 2 * PI)).ln() / (2 * base.ln())

    low = max(int(dimension(s.beta_fast).to_integral_value(rounding="ROUND_FLOOR")), 0)
    high = min(int(dimension(s.beta_slow).to_integral_value(rounding="ROUND_CEILING")), columns - 1)
    span = Decimal(max(high - low, 0)) or Decimal("0.001")
    scaled = []
    for i, f in enumerate(plain):
        ramp = min(max((i - low) / span, Decimal(0)), Decimal(1))
        scaled.append(ramp * f / Decimal(s.factor) + (1 - ramp) * f)
    return scaled
