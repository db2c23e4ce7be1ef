"""What one rendering of a chat template may cost: loops, calls, text and lists are paid for from a `Budget`."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context

BUDGET_KEY = "the budget"
"""Where the rendering's context has the `Budget`; with spaces, so that no template can name it."""

MAX_TIME_S = 5.0
BASE_UNITS = 1 << 25
UNITS_PER_INPUT_CHAR = 64
STEP_UNITS = 64
CALL_UNITS = 512
ITEM_UNITS = 16


class RefusedError(SecurityError):
    """A template asks for something that templates may not do, or for too much."""


class Budget:
    """What one rendering may still spend.

    Args:
        input_chars: Size of messages and tools; a longer conversation may cost more.
    """

    __slots__ = ("_deadline_s", "_units")

    def __init__(self, input_chars: int) -> None:
        self._units = BASE_UNITS + UNITS_PER_INPUT_CHAR * input_chars
        self._deadline_s = monotonic() + MAX_TIME_S

    def spend(self, units: int) -> None:
        """Pay for `units` characters or items.

        Raises:
            RefusedError: That is more than is left, or the time is over.
        """
        self._units -= units
        if self._units < 0 or monotonic() > self._deadline_s:
            raise RefusedError("it repeats or builds too much")

    def spend_on(self, *values: object, times: int = 1) -> None:
        """Pay for `values` written out in full, `times` times."""
        self.spend(weigh(values, self._units) * times)


def budget_of(context: Context) -> Budget:
    """The budget of the rendering that `context` belongs to."""
    budget = context.parent[BUDGET_KEY]
    assert isinstance(budget, Budget)
    return budget


def weigh(value: object, limit: int) -> int:
    """Units for the characters and items in `value`, shared parts as often as they appear, up to about `limit`.

    Lists can hold the same list twice, and that one another twice: forty levels are 2^40 items once written out.
    """
    total, stack = 0, [value]
    while stack and total <= limit:
        item = stack.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, (Mapping, list, tuple, set, frozenset)):
            total += ITEM_UNITS * (len(item) + 1)
            if total <= limit:
                stack.extend(item)
                stack.extend(item.values() if isinstance(item, Mapping) else ())
    return total
