import threading
import time

import pytest

from modelc.formats.modelc.pool import MAX_THREADS, ordered_map


def test_results_come_in_the_order_of_the_items() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.02 if item == 0 else 0)
        return item * item

    assert list(ordered_map(slow_first, range(20))) == [item * item for item in range(20)]


def test_only_a_few_items_are_in_work_at_a_time() -> None:
    started: list[int] = []
    results = ordered_map(started.append, range(1000))
    next(results)
    time.sleep(0.02)
    assert len(started) <= MAX_THREADS + 1
    results.close()


def test_an_error_reaches_the_caller_and_ends_the_work() -> None:
    done: list[int] = []
    before = set(threading.enumerate())

    def fail_at_three(item: int) -> None:
        if item == 3:
            raise ValueError("three")
        done.append(item)

    with pytest.raises(ValueError, match="three"):
        list(ordered_map(fail_at_three, range(1000)))
    assert len(done) <= 3 + 2 * MAX_THREADS
    assert set(threading.enumerate()) <= before


def test_no_items_are_no_results() -> None:
    assert list(ordered_map(str, [])) == []
