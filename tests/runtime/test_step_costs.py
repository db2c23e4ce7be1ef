import math

import pytest

from modelc.runtime.step_costs import MEMORY, TRIES, StepCosts


def costs_of(*steps: tuple[int, float], sequences: int = 1) -> StepCosts:
    """Costs after TRIES steps of each (rows, seconds)."""
    costs = StepCosts(64)
    for rows, seconds in steps:
        for _ in range(TRIES):
            costs.note(rows, sequences, seconds)
    return costs


def test_until_steps_without_proposals_are_known_nothing_is_worth_it() -> None:
    assert StepCosts(8).ratio(1) == math.inf
    assert costs_of((5, 2.0)).ratio(4) == math.inf
    costs = StepCosts(8)
    for _ in range(TRIES - 1):
        costs.note(1, 1, 1.0)
        assert costs.ratio(1) == math.inf
    costs.note(1, 1, 1.0)
    assert costs.ratio(1) == 1.0


def test_sizes_between_known_ones_lie_on_a_line_and_larger_ones_are_tried() -> None:
    costs = costs_of((1, 2.0), (5, 6.0))
    assert [costs.ratio(n) for n in (0, 1, 2, 4, 5, 40, 100)] == [1.0, 1.5, 2.0, 3.0, 3.0, 3.0, 3.0]


def test_the_rows_of_all_sequences_count() -> None:
    costs = costs_of((4, 2.0), (12, 3.0), sequences=4)
    assert [costs.ratio(n) for n in (0, 1, 2, 3)] == [1.0, 1.25, 1.5, 1.5]


def test_seconds_are_known_for_steps_as_large_as_a_measured_one() -> None:
    assert StepCosts(8).seconds(1) is None
    costs = costs_of((2, 2.0), (4, 6.0))
    assert [costs.seconds(rows) for rows in (1, 2, 3, 4, 64, 100)] == [None, 2.0, 4.0, 6.0, 6.0, 6.0]


def test_interrupted_steps_do_not_count() -> None:
    costs = costs_of((1, 1.0))
    for seconds in (50.0, 1.5, 7.0):
        costs.note(3, 1, seconds)
    costs.note(1, 1, 30.0)
    assert costs.ratio(2) == 1.5


def test_more_rows_are_never_cheaper() -> None:
    assert costs_of((1, 2.0), (2, 1.0), (4, 1.5)).ratio(3) == 1.0


def test_everything_is_measured_anew_after_a_while() -> None:
    costs = costs_of((1, 1.0), (2, 5.0))
    assert costs.ratio(1) == 5.0
    for _ in range(MEMORY - 2 * TRIES - 1):
        costs.note(1, 1, 1.0)
    assert costs.ratio(1) == 5.0
    for _ in range(TRIES):
        assert costs.ratio(1) in (5.0, math.inf)
        costs.note(1, 1, 3.0)
    assert costs.ratio(1) == 1.0, "a pair of rows is tried again"


@pytest.mark.parametrize("rows", [1, 64])
def test_the_largest_step_may_be_noted(rows: int) -> None:
    assert costs_of((rows, 1.0), sequences=rows).ratio(1) == 1.0
