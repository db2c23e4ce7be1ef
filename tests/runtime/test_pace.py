from modelc.runtime.pace import FIRST_RESPITE, LONGEST_RESPITE, Pace


def run(pace: Pace, steps: int, seconds: float = 1.0, stalls: int = 0) -> list[int]:
    """Threads of so many steps, each of one row."""
    used = []
    for _ in range(steps):
        used.append(pace.threads())
        pace.note(1, seconds, stalls if used[-1] > 1 else 0)
    return used


def test_as_long_as_nobody_waits_all_threads_take_part() -> None:
    assert set(run(Pace(4), 50)) == {4}


def test_after_a_stall_one_thread_goes_on_alone_for_a_while() -> None:
    pace = Pace(4)
    assert run(pace, 1, seconds=10.0, stalls=1) == [4]
    assert run(pace, FIRST_RESPITE + 1, seconds=1.0) == [1] * FIRST_RESPITE + [4]


def test_when_one_thread_is_no_faster_the_team_comes_back_at_once() -> None:
    pace = Pace(4)
    run(pace, 1, seconds=1.0, stalls=1)
    assert run(pace, 2, seconds=3.0) == [1, 4]


def test_a_row_s_cost_counts_not_a_step_s() -> None:
    pace = Pace(2)
    pace.note(100, 100.0, 1)
    assert pace.threads() == 1
    pace.note(1, 2.0, 0)  # a smaller step, but each row was dearer
    assert pace.threads() == 2


def test_while_the_neighbours_stay_the_respite_doubles_up_to_its_limit() -> None:
    pace = Pace(2)
    lengths = []
    for _ in range(10):
        assert run(pace, 1, seconds=10.0, stalls=1) == [2]
        alone = 0
        while pace.threads() == 1:
            run(pace, 1)
            alone += 1
        lengths.append(alone)
    assert lengths[:3] == [FIRST_RESPITE, 2 * FIRST_RESPITE, 4 * FIRST_RESPITE]
    assert lengths[-1] == LONGEST_RESPITE


def test_quiet_steps_make_the_next_respite_short_again() -> None:
    pace = Pace(2)
    for _ in range(3):
        run(pace, 1, seconds=10.0, stalls=1)
        while pace.threads() == 1:
            run(pace, 1)
    run(pace, 200)
    run(pace, 1, seconds=10.0, stalls=1)
    assert run(pace, FIRST_RESPITE + 1) == [1] * FIRST_RESPITE + [2]
