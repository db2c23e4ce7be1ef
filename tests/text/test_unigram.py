from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.text.unigram import UNKNOWN_PENALTY, Unigram

TOKENS = ["?", "a", "b", "ab", "bb", "abb", "ba"]
SCORES = [0.0, -1.0, -1.5, -2.0, -2.25, -4.5, -3.75]
IDS = {text: token for token, text in enumerate(TOKENS) if token}


def encode(word: str, **options: object) -> tuple[int, ...]:
    return Unigram(IDS, SCORES, **{"unknown_id": 0, **options}).encode(word)  # type: ignore[arg-type]


def test_the_best_sum_of_scores_wins_over_the_longest_token() -> None:
    assert encode("abb") == (1, 4)  # -3.25; ab b is -3.5, abb is -4.5
    assert encode("") == ()


def test_neighbours_that_are_unknown_are_one_unknown() -> None:
    assert encode("xyazz") == (0, 1, 0)


def test_unknown_characters_are_left_out_or_their_bytes() -> None:
    assert encode("axa", unknown_id=None) == (1, 1)
    assert encode("aé", byte_ids=range(100, 356)) == (1, 100 + 0xC3, 100 + 0xA9)


@given(st.text("abx", max_size=9))
def test_no_other_way_to_cut_has_a_better_score(word: str) -> None:
    worst = min(SCORES[1:]) - UNKNOWN_PENALTY

    def score(text: str) -> float:
        return SCORES[IDS[text]] if text in IDS else worst if len(text) == 1 else float("-inf")

    best = float("-inf")
    for cuts in product([False, True], repeat=max(len(word) - 1, 0)):
        pieces = "".join(char + ("|" if cut else "") for char, cut in zip(word, [*cuts, False], strict=False)).split(
            "|"
        )
        best = max(best, sum(map(score, filter(None, pieces))))
    found = encode(word)
    unknown = sum(1 for char in word if char not in IDS)
    assert sum(SCORES[token] for token in found if token) + unknown * worst == pytest.approx(best)
