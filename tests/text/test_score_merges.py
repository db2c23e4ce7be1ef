from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from modelc.text.score_merges import ScoreMerges


def pieces(text: str, scores: Mapping[str, float]) -> list[str]:
    tokens = {token: at for at, token in enumerate(scores)}
    return ScoreMerges(tokens, list(scores.values())).apply(text)


def one_by_one(text: str, scores: Mapping[str, float]) -> list[str]:
    """The definition: again and again the leftmost of the best pairs."""
    parts = list(text)
    while True:
        pairs = [
            (-scores[left + right], at) for at, (left, right) in enumerate(pairwise(parts)) if left + right in scores
        ]
        if not pairs:
            return parts
        at = min(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def test_the_best_score_goes_first() -> None:
    assert pieces("abc", {"ab": -2.0, "bc": -1.0}) == ["a", "bc"]
    assert pieces("abc", {"ab": -1.0, "bc": -2.0, "abc": -9.0}) == ["abc"]


def test_the_leftmost_of_equals_goes_first() -> None:
    assert pieces("aaaaa", {"aa": 0.0}) == ["aa", "aa", "a"]


def test_what_is_no_token_stays_alone() -> None:
    assert pieces("x🙂y", {}) == ["x", "🙂", "y"]
    assert pieces("", {}) == []


SCORES = st.dictionaries(st.text("abc", min_size=2, max_size=5), st.sampled_from([0.0, -1.0, -1.5, -3.0]), max_size=20)


@given(st.text("abc", max_size=24), SCORES)
def test_it_is_what_the_definition_gives(text: str, scores: dict[str, float]) -> None:
    assert pieces(text, scores) == one_by_one(text, scores)
