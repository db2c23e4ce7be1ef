from collections.abc import Sequence

import pytest

from modelc.runtime.speculation import PromptLookup, Proposer, Speculator
from modelc.runtime.step_costs import StepCosts

# ---------------------------------------------------------------------------------------------------- prompt lookup


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2, 3, 4, 5, 1, 2, 3], [4, 5, 1, 2]),
        ([1, 2, 9, 7, 7, 1, 2], [9, 7, 7, 1]),  # an ending of two
        ([1, 2, 3, 4, 8, 2, 3, 5, 1, 2, 3], [4, 8, 2, 3]),  # an ending of three before a later one of two
        ([1, 2, 3, 1, 2, 4, 1, 2], [4, 1, 2]),  # the last occurrence
        ([6, 6, 6], [6]),
        ([1, 2, 3, 4], []),
        ([1], []),
        ([], []),
    ],
)
def test_what_followed_the_last_occurrence_of_the_ending_is_proposed(tokens: list[int], expected: list[int]) -> None:
    assert PromptLookup().propose(tokens, 4) == expected
    assert PromptLookup().propose(tokens, 1) == expected[:1]


def test_a_growing_sequence_finds_what_it_would_find_at_once() -> None:
    tokens = [int(t) for t in "1213212312132231213123123211231231321"]
    grown = PromptLookup()
    for end in range(1, len(tokens) + 1):
        assert grown.propose(tokens[:end], 5) == PromptLookup().propose(tokens[:end], 5)


def test_after_forgetting_only_the_new_places_count() -> None:
    lookup = PromptLookup()
    lookup.propose([1, 2, 3, 4, 5, 6], 2)
    lookup.forget()
    assert lookup.propose([5, 6, 7, 1, 2], 2) == []
    assert lookup.propose([5, 6, 7, 1, 2, 5, 6], 2) == [7, 1]


# ------------------------------------------------------------------------------------------------------- speculator


class Oracle:
    """Proposes what comes next in a sequence that it knows; every `wrong`-th position it is wrong about."""

    def __init__(self, answer: Sequence[int], wrong: int = 0) -> None:
        self.answer = [-1 if wrong and i % wrong == 0 else token for i, token in enumerate(answer)]
        self.asked: list[int] = []
        self.forgotten = 0

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        self.asked.append(n)
        return self.answer[len(tokens) : len(tokens) + n]

    def forget(self) -> None:
        self.forgotten += 1


class Price(StepCosts):
    """Each row costs `row` of a step without proposals."""

    def __init__(self, row: float) -> None:
        super().__init__(64)
        self.row = row

    def ratio(self, proposed: int) -> float:
        return 1 + self.row * proposed


ANSWER = list(range(1000))


def steps(proposer: Proposer, gamma: int, price: float, n_tokens: int = 400) -> list[int]:
    """Proposals of each step while a sequence becomes ANSWER."""
    speculator = Speculator(proposer, gamma, Price(price))
    tokens, counts = ANSWER[:1], []
    while len(tokens) < n_tokens:
        proposal = speculator.propose(tokens, 100)
        following = ANSWER[len(tokens) : len(tokens) + len(proposal)]
        right = next((i for i, (a, b) in enumerate(zip(proposal, following, strict=True)) if a != b), len(proposal))
        tokens = ANSWER[: len(tokens) + right + 1]
        counts.append(len(proposal))
    return counts


def test_of_a_proposer_that_is_always_right_everything_is_asked() -> None:
    for price in (0.0, 0.3):
        assert set(steps(Oracle(ANSWER), 5, price)[20:]) == {5}


@pytest.mark.parametrize("price", [0.1, 0.35, 1.0])
def test_of_one_that_is_never_right_nothing_is_proposed_after_a_few_steps(price: float) -> None:
    counts = steps(Oracle(ANSWER, wrong=1), 5, price)
    assert sum(counts[25:]) == 0
    assert sum(counts) < 60


def test_one_that_is_right_half_of_the_time_pays_where_rows_are_cheap() -> None:
    assert min(steps(Oracle(ANSWER, wrong=2), 4, 0.05)) >= 1
    assert max(steps(Oracle(ANSWER, wrong=2), 4, 0.8)[10:]) == 0


def test_rows_that_cost_as_much_as_steps_are_never_worth_it() -> None:
    assert sum(steps(Oracle(ANSWER), 8, 1.0)) == 0


def test_a_guess_that_is_not_proposed_is_compared_all_the_same() -> None:
    oracle = Oracle(ANSWER, wrong=1)
    speculator = Speculator(oracle, 4, Price(0.3))
    for end in range(1, 60):
        speculator.propose(ANSWER[:end], 4)
    assert oracle.asked[-1] == 1
    assert speculator.propose(ANSWER[:60], 4) == []
    oracle.answer = ANSWER
    proposals = [len(speculator.propose(ANSWER[:end], 4)) for end in range(61, 100)]
    assert proposals[0] == 0
    assert proposals[-1] == 4


def test_no_more_than_is_allowed_is_proposed() -> None:
    speculator = Speculator(Oracle(ANSWER), 4, Price(0.0))
    assert speculator.propose(ANSWER[:10], 2) == [10, 11]
    assert speculator.propose(ANSWER[:12], 0) == []
    assert speculator.propose(ANSWER[:12], -1) == []
    assert speculator.propose(ANSWER[:13], 9) == [13, 14, 15, 16]


def test_a_shift_is_passed_on_and_a_guess_before_it_is_not_compared() -> None:
    oracle = Oracle(ANSWER)
    speculator = Speculator(oracle, 4, Price(0.1))
    moved = ANSWER[100:114]  # tokens behind the guess's place that have nothing to do with it
    for _ in range(40):
        assert speculator.propose(ANSWER[:10], 4) == [10, 11, 12, 13]
        speculator.forget()
        assert len(speculator.propose(moved, 4)) == 4
        speculator.forget()
    assert oracle.forgotten == 80


def test_what_was_verified_is_counted() -> None:
    speculator = Speculator(Oracle(ANSWER), 4, Price(0.0))
    for proposed, accepted in ((4, 3), (0, 0), (2, 0)):
        speculator.note(proposed, accepted)
    assert (speculator.proposed, speculator.accepted) == (6, 3)
