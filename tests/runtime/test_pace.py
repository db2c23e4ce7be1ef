import pytest

from modelc.runtime.pace import FIRST_RESPITE_S, LONGEST_RESPITE_S, Pace


class Story:
    """A pace with a clock that is moved by hand; steps of `rows` rows."""

    def __init__(self, n_threads: int = 4) -> None:
        self.now_s = 100.0
        self.pace = Pace(n_threads, lambda: self.now_s)

    def step(self, seconds: float, rows: int = 1, stalls: int = 0) -> int:
        """One step; returns how many threads took part."""
        n_threads = self.pace.threads()
        self.now_s += seconds
        self.pace.note(rows, seconds, n_threads, stalls)
        return n_threads

    def stall(self, seconds: float = 0.01) -> float:
        """A step that stalls; returns how long one thread goes on alone, in steps of 1 ms."""
        while self.step(0.001) == 1:
            pass
        self.step(seconds, stalls=1)
        start_s = self.now_s
        while self.pace.threads() == 1:
            self.step(0.001)
        return self.now_s - start_s


def test_as_long_as_nobody_waits_all_threads_take_part() -> None:
    story = Story()
    assert {story.step(0.001) for _ in range(100)} == {4}


def test_after_a_stall_one_thread_goes_on_alone_for_a_while() -> None:
    assert Story().stall() == pytest.approx(FIRST_RESPITE_S, abs=0.002)


def test_when_one_thread_is_slower_the_team_comes_back_at_once() -> None:
    story = Story()
    assert story.step(0.005, rows=8, stalls=1) == 4
    assert story.step(0.006, rows=8) == 1
    assert story.step(0.001) == 4


def test_only_steps_of_as_many_rows_are_compared() -> None:
    story = Story()
    story.step(0.001, rows=1, stalls=1)
    assert story.step(0.01, rows=64) == 1
    assert story.step(0.001) == 1


def test_while_stalls_go_on_the_respite_doubles_up_to_its_limit() -> None:
    story = Story()
    respites = [story.stall() for _ in range(10)]
    assert respites[:3] == pytest.approx([FIRST_RESPITE_S, 2 * FIRST_RESPITE_S, 4 * FIRST_RESPITE_S], rel=0.1)
    assert respites[-1] == pytest.approx(LONGEST_RESPITE_S, rel=0.1)


def test_quiet_steps_make_the_next_respite_short_again() -> None:
    story = Story()
    for _ in range(5):
        story.stall()
    for _ in range(1000):
        story.step(0.001)
    assert story.stall() == pytest.approx(FIRST_RESPITE_S, abs=0.002)


def test_a_team_of_one_stays_one() -> None:
    story = Story(1)
    assert {story.step(0.001) for _ in range(10)} == {1}
