"""Real threads at real barriers, with instructions that notice who did not wait."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.jit import kernel
from modelc.kernels.objects import python_function
from modelc.kernels.pointers import i64_ptr
from modelc.kernels.sync import atomic_add
from modelc.runtime.pace import Pace
from modelc.runtime.team import Team
from tests.kernels.opcode_runner import address_of, objects

N_THREADS = 3
LINE = 16  # words between the marks of two threads
STEP, MARKS, FAULTS, VISITS, THREADS = env.TOKENS, env.FLOATS, env.QUANTS, env.KV, env.SLOTS  # slots of E, as used here


@kernel
def mark(I, E, tid, nth):
    """Write the step's number to this thread's mark, the later the higher the thread."""
    busy = 0
    for i in range(2000 * tid):
        busy ^= i * E[STEP]
    i64_ptr(E[MARKS])[tid * LINE] = E[STEP]
    i64_ptr(E[MARKS])[tid * LINE + 1] = busy
    atomic_add(i64_ptr(E[VISITS]), tid, 1)
    atomic_add(i64_ptr(E[THREADS]), nth, 1)


@kernel
def inspect(I, E, tid, nth):
    """Count the threads whose mark is not there."""
    for other in range(nth):
        if i64_ptr(E[MARKS])[other * LINE] != E[STEP]:
            atomic_add(i64_ptr(E[FAULTS]), 0, 1)


@kernel
def erase(I, E, tid, nth):
    """Take this thread's mark away."""
    i64_ptr(E[MARKS])[tid * LINE] = -1


class Fixture:
    """A team over the program mark, inspect, erase, with a barrier before each of the last two."""

    def __init__(self, n_threads: int, masks: tuple[int, int] = (3, 3)) -> None:
        self.marks = np.full(n_threads * LINE, -1, np.int64)
        self.faults, self.visits, self.threads = (np.zeros(n, np.int64) for n in (1, n_threads, n_threads + 1))
        self.control = np.zeros(env.FIRST_COUNTER + env.COUNTER_WORDS, np.int64)
        self.cycles = np.zeros(3, np.int64)
        self.env = np.zeros(env.N_ENV, np.int64)
        for slot, array in (
            (MARKS, self.marks),
            (FAULTS, self.faults),
            (VISITS, self.visits),
            (THREADS, self.threads),
            (env.CONTROL, self.control),
        ):
            self.env[slot] = array.ctypes.data
        self.env[env.SPINS] = 200  # cores may be few here: give them away early
        self.table = np.zeros((3, env.I_WORDS), np.int64)
        self.table[:, env.I_ADDRESS] = [address_of(function) for function in (mark, inspect, erase)]
        self.table[1:, env.I_BARRIER] = masks
        addresses = objects().addresses(["execute", "worker"])
        execute, worker = python_function(addresses["execute"], 6, 0), python_function(addresses["worker"], 5, 1)
        self.team = Team(self.table, self.env, self.control, execute, worker, n_threads)

    def run(self, steps: int, rows: int = 1) -> None:
        self.env[env.N_ROWS] = rows
        for _ in range(steps):
            self.env[STEP] += 1
            assert self.team.run(rows) > 0


@pytest.fixture
def teamwork(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fixture]:
    """Three threads that always all take part, however busy the machine is."""
    monkeypatch.setattr(Pace, "threads", lambda pace: pace._n_threads)
    fixture = Fixture(N_THREADS)
    yield fixture
    fixture.team.close()


@pytest.mark.parametrize("rows", [1, 5])
def test_nobody_passes_a_barrier_before_all_are_there(teamwork: Fixture, rows: int) -> None:
    teamwork.run(60, rows)
    assert teamwork.faults[0] == 0
    assert teamwork.visits.tolist() == [60] * N_THREADS
    assert teamwork.threads[N_THREADS] == 60 * N_THREADS


@pytest.mark.parametrize(("rows", "mask"), [(1, 1), (5, 2)])
def test_each_kind_of_batch_has_its_own_barriers(monkeypatch: pytest.MonkeyPatch, rows: int, mask: int) -> None:
    monkeypatch.setattr(Pace, "threads", lambda pace: pace._n_threads)
    for masks, waits in (((mask, mask), True), ((3 - mask, 3 - mask), False)):
        fixture = Fixture(N_THREADS, masks)
        fixture.run(60, rows)
        fixture.team.close()
        assert (fixture.faults[0] == 0) == waits


def test_parked_threads_come_back(teamwork: Fixture) -> None:
    for pause_s in (0.0, 0.03, 0.1, 0.0005, 0.1):
        time.sleep(pause_s)  # polling, about to park, parked
        teamwork.run(5)
    assert teamwork.faults[0] == 0
    assert teamwork.visits.tolist() == [25] * N_THREADS


def test_an_idle_team_uses_no_processor_time(teamwork: Fixture) -> None:
    teamwork.run(1)
    end_s = time.monotonic() + 10
    while not all(teamwork.team._parked[1:]) and time.monotonic() < end_s:
        time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


def test_some_threads_may_sit_a_step_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = [3, 1, 3, 2, 2, 1, 1, 3, 2, 3] * 4
    sizes = iter(plan)
    monkeypatch.setattr(Pace, "threads", lambda pace: next(sizes))
    fixture = Fixture(N_THREADS)
    for i in range(len(plan)):
        if i % 10 == 6:
            time.sleep(0.06)  # long enough to park
        fixture.run(1)
    fixture.team.close()
    assert fixture.faults[0] == 0
    assert fixture.visits.tolist() == [sum(n > tid for n in plan) for tid in range(N_THREADS)]


def members() -> set[threading.Thread]:
    """Threads of teams that are alive."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("modelc-")}


def test_a_team_of_one_has_no_other_threads() -> None:
    before = members()
    fixture = Fixture(1)
    fixture.run(3)
    assert members() <= before
    fixture.team.close()
    assert (fixture.faults[0], fixture.visits.tolist()) == (0, [3])


@pytest.mark.parametrize("pause_s", [0.0, 0.1])
def test_closing_ends_the_threads_whether_they_poll_or_sleep(pause_s: float) -> None:
    before = members()
    fixture = Fixture(N_THREADS)
    assert len(members() - before) == N_THREADS - 1
    fixture.run(2)
    time.sleep(pause_s)
    fixture.team.close()
    assert members() <= before


def test_waits_that_are_too_long_are_counted_and_then_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[int, float, int, int]] = []
    monkeypatch.setattr(Pace, "note", lambda pace, *what: noted.append(what))
    monkeypatch.setattr(Pace, "threads", lambda pace: pace._n_threads)
    fixture = Fixture(2)
    fixture.env[env.SPINS] = 1  # whoever waits at all has waited too long
    fixture.run(20, rows=7)
    fixture.team.close()
    assert len(noted) == 20
    assert all(rows == 7 and seconds > 0 and n_threads == 2 for rows, seconds, n_threads, _ in noted)
    assert any(stalls > 0 for *_, stalls in noted)
    assert fixture.control[env.STALLS] == 0


def test_cycles_are_counted_when_asked_for() -> None:
    fixture = Fixture(1)
    fixture.run(2)
    assert not fixture.cycles.any()
    fixture.env[env.PROFILE] = fixture.cycles.ctypes.data
    fixture.run(2)
    assert (fixture.cycles > 0).all()
    fixture.team.close()
