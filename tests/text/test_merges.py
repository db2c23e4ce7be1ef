import random
import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from modelc.text.merges import Merges

PAIRS = [left + right for left in "abc" for right in "abc"]


def build(*merges: str, alphabet: str = "abc") -> tuple[Merges, dict[str, int]]:
    texts = dict.fromkeys([*alphabet, *(merge.replace(" ", "") for merge in merges)])
    ids = {text: token for token, text in enumerate(texts)}
    return Merges(ids, len(ids), merges), ids


def merged(word: str, *merges: str) -> list[str]:
    rules, ids = build(*merges)
    texts = {token: text for text, token in ids.items()}
    return [texts[symbol] for symbol in rules.apply([ids[char] for char in word])]


def test_the_best_rank_goes_first_wherever_it_is() -> None:
    assert merged("abc", "b c", "a b") == ["a", "bc"]
    assert merged("abc", "a b", "b c") == ["ab", "c"]


def test_of_equal_ranks_the_leftmost_goes_first() -> None:
    assert merged("aaa", "a a") == ["aa", "a"]
    assert merged("aaaa", "a a", "aa aa") == ["aaaa"]


def test_what_was_merged_merges_on() -> None:
    assert merged("abcabc", "a b", "ab c", "abc abc") == ["abcabc"]


def test_no_rules_leave_the_word_in_pieces() -> None:
    assert merged("abc") == ["a", "b", "c"]
    assert merged("") == []


def test_the_first_of_two_equal_rules_counts() -> None:
    assert merged("abc", "a b", "b c", "a b") == ["ab", "c"]


def test_rules_that_are_no_pair_are_skipped() -> None:
    assert merged("ab", "ab", " b", "a ", "") == ["a", "b"]


def test_a_merge_may_pass_through_a_text_that_is_no_token() -> None:
    rules = Merges({"a": 0, "b": 1, "c": 2, "abc": 3}, 4, ["a b", "ab c"])
    assert rules.apply([0, 1, 2]) == [3]
    [between] = rules.apply([0, 1])
    assert between == 4
    assert rules.text(between) == "ab"


def slow_merge(word: list[str], ranks: dict[tuple[str, str], int]) -> list[str]:
    while True:
        pairs = [(ranks[pair], at) for at, pair in enumerate(pairwise(word)) if pair in ranks]
        if not pairs:
            return word
        _, at = min(pairs)
        word = [*word[:at], word[at] + word[at + 1], *word[at + 2 :]]


@given(
    st.lists(st.tuples(st.sampled_from([*"abc", *PAIRS]), st.sampled_from([*"abc", *PAIRS])), max_size=20, unique=True),
    st.text("abc", max_size=30),
)
def test_it_merges_as_a_search_for_the_best_pair_does(pairs: list[tuple[str, str]], word: str) -> None:
    expected = slow_merge(list(word), {pair: rank for rank, pair in enumerate(pairs)})
    assert merged(word, *(" ".join(pair) for pair in pairs)) == expected


def test_a_word_of_a_hundred_thousand_characters_takes_no_quadratic_time() -> None:
    rules, ids = build(*(" ".join(pair) for pair in PAIRS), *(f"{left} {right}" for left in PAIRS for right in PAIRS))
    word = [ids[char] for char in random.Random(1).choices("abc", k=100_000)]
    start = time.perf_counter()
    assert len(rules.apply(word)) < 50_001
    assert time.perf_counter() - start < 3.0
