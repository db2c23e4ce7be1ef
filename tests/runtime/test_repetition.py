from typing import Any

import pytest

from modelc.kernels.objects import python_function
from modelc.runtime.repetition import MAX_PENALTY, RepetitionPenalty
from modelc.runtime.sampling import Sampling
from modelc.text import BpeTokenizer
from tests.kernels.opcode_runner import objects

BYTES = BpeTokenizer.byte_fallback()


def penalties(text: str, **sampling: Any) -> dict[str, float]:
    find = python_function(objects().addresses(["repeats"])["repeats"], 1, 1)
    asked = {"dry_multiplier": 1.0, "dry_base": 2.0, "dry_sequence_breakers": ("\n",)} | sampling
    penalty = RepetitionPenalty(find, Sampling(**asked), list(text.encode()), BYTES)
    tokens, values = penalty.penalties()
    return {chr(token): value for token, value in zip(tokens.tolist(), values.tolist(), strict=True)}


def test_what_would_go_on_with_a_repetition_is_penalized_by_its_length() -> None:
    assert penalties("abcd ab") == {"c": -1.0}
    assert penalties("abcd abc") == {"d": -2.0}
    assert penalties("abcd a") == {}
    assert penalties("abcd abc", dry_multiplier=0.5, dry_base=3.0) == {"d": -1.5}
    assert penalties("abcd abc", dry_allowed_length=3) == {"d": -1.0}
    assert penalties("abcd abc", dry_allowed_length=4) == {}


def test_the_longest_repetition_counts() -> None:
    assert penalties("xabc yabc xab") == {"c": -2.0}
    assert penalties("abc abd ab") == {"c": -1.0, "d": -2.0}


def test_repetitions_do_not_go_across_breakers_and_breakers_are_free() -> None:
    assert penalties("abcd\nabc", dry_sequence_breakers=("x",)) == {"d": -2.0}
    assert penalties("abcd abc\n") == {}
    assert penalties("xabcd \nabc") == {"d": -2.0}
    assert penalties("xyab\nxyab") == {}, "a line break is what would go on"
    assert penalties("1xyab2, 1xyab", dry_sequence_breakers=["xy"]) == {"2": -1.0}
    assert penalties("1xyab2, 1xyab", dry_sequence_breakers=["x", "b"]) == {}


def test_only_so_many_tokens_are_looked_at() -> None:
    assert penalties("abcd abc", dry_penalty_last_n=8) == {"d": -2.0}
    assert penalties("abcd abc", dry_penalty_last_n=7) == {"d": -1.0}
    assert penalties("abcd abc", dry_penalty_last_n=100) == {"d": -2.0}
    assert penalties("abcd abc", dry_penalty_last_n=0) == {}


def test_a_penalty_stays_finite() -> None:
    assert penalties("a" * 500, dry_base=100.0) == {"a": -MAX_PENALTY}
    assert penalties("a" * 500, dry_base=1.0) == {"a": -1.0}


@pytest.mark.parametrize("text", ["", "a"])
def test_short_texts_have_none(text: str) -> None:
    assert penalties(text) == {}
