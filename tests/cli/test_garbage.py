import gc
from collections.abc import Iterator

import pytest

from modelc.cli import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


def cycle() -> int:
    """Garbage that only the collector finds; its address."""
    made: list[object] = []
    made.append(made)
    return id(made)


def is_there(address: int) -> bool:
    return any(id(each) == address for each in gc.get_objects())


def test_a_start_makes_what_stays_without_a_collection() -> None:
    gc.disable()
    garbage.begin()
    before = garbage.collections()
    kept = [[number] for number in range(garbage.STARTING // 2)]
    assert gc.isenabled()
    assert len(kept) > 0
    assert garbage.collections() == before


def test_what_there_is_when_the_start_ends_is_not_looked_at_again() -> None:
    garbage.begin()
    garbage.settle(garbage.collections())
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold() == garbage.SERVING
    later = cycle()
    assert is_there(later)
    gc.collect()
    assert not is_there(later)


def test_garbage_is_looked_for_first_where_there_was_much() -> None:
    before = garbage.collections()
    gc.collect()
    lost = cycle()
    garbage.settle(before)
    gc.unfreeze()
    assert not is_there(lost)
