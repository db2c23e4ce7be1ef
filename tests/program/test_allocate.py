import itertools

import numpy as np
import pytest

from modelc.formats import open_model
from modelc.models import lower
from modelc.program import Buffer, Builder
from modelc.program.allocate import barriers, place
from modelc.program.program import ALL, PRIVATE, ROWS, Access, Instruction
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.program.race_check import instructions_of, lifetimes, overlapping, races
from tests.runtime.tiny_encoder import BERT
from tests.runtime.tiny_mlp import mlp_of

ONE_ROW, MANY = 0, 1  # modes; bit 1 << mode of a mask


def buffer(cols: int = 32, rows: int = 8, space: str = "floats", *, private: bool = False) -> Buffer:
    return Buffer(cols, (cols + 31) // 32 * 32, rows, space, private)


def read(b: Buffer | None, one: str = ALL, many: str = ALL, start: int = 0, stop: int = 32) -> Access:
    return Access(b, False, one, many, start, stop)


def write(b: Buffer | None, one: str = "4 groups", many: str = ROWS, start: int = 0, stop: int = 32) -> Access:
    return Access(b, True, one, many, start, stop)


def steps(*accesses: Access | tuple[Access, ...]) -> list[Instruction]:
    return [Instruction("op", (), a if isinstance(a, tuple) else (a,), 0) for a in accesses]


def masks_of(*accesses: Access | tuple[Access, ...], kept: Buffer | None = None) -> list[int]:
    instructions = steps(*accesses)
    return barriers(instructions, place(instructions, [kept or buffer()]).offsets)


# --------------------------------------------------------------------------------------------------------- barriers


def test_reading_what_other_threads_wrote_needs_a_barrier() -> None:
    b = buffer()
    assert masks_of(write(b), read(b)) == [0, 3]


def test_reading_the_part_that_the_same_thread_wrote_needs_none() -> None:
    b = buffer()
    assert masks_of(write(b), read(b, "4 groups", ROWS)) == [0, 0]


def test_each_mode_has_its_own_barriers() -> None:
    b = buffer()
    assert masks_of(write(b), read(b, "4 groups", ALL)) == [0, 1 << MANY]
    assert masks_of(write(b), read(b, ALL, ROWS)) == [0, 1 << ONE_ROW]


def test_parts_of_another_number_are_other_parts() -> None:
    b = buffer()
    assert masks_of(write(b, "4 groups"), read(b, "5 groups", ROWS)) == [0, 1 << ONE_ROW]


def test_overwriting_what_other_threads_still_read_needs_a_barrier() -> None:
    b = buffer()
    assert masks_of(read(b), write(b)) == [0, 3]


def test_two_writers_of_different_parts_need_a_barrier() -> None:
    b = buffer()
    assert masks_of(write(b, "4 groups", ROWS), write(b, "2 heads", "units")) == [0, 3]


def test_readers_do_not_wait_for_one_another() -> None:
    b = buffer()
    assert masks_of(read(b), read(b, "4 groups", ROWS), read(b)) == [0, 0, 0]


def test_other_columns_are_no_conflict() -> None:
    b = buffer(64)
    assert masks_of(write(b, stop=32), read(b, start=32, stop=64)) == [0, 0]
    assert masks_of(write(b, stop=33), read(b, start=32, stop=64)) == [0, 3]


def test_other_buffers_are_no_conflict() -> None:
    a, b = buffer(), buffer()
    assert masks_of((write(a), read(b)), (read(a, "4 groups", ROWS), read(b))) == [0, 0]


def test_one_barrier_serves_everything_before_it() -> None:
    a, b = buffer(), buffer()
    assert masks_of(write(a), write(b), read(a), read(b)) == [0, 0, 3, 0]


def test_copies_of_the_threads_are_no_conflict_in_one_row_batches() -> None:
    x = buffer(private=True)
    assert masks_of(write(x, PRIVATE, ROWS), read(x, PRIVATE, ALL)) == [0, 1 << MANY]
    assert masks_of(write(x, PRIVATE, ROWS), read(x, ALL, ROWS)) == [0, 1 << ONE_ROW]


def test_a_buffer_in_the_place_of_a_dead_one_waits_for_its_readers() -> None:
    a, b = buffer(), buffer()
    instructions = steps(write(a), read(a), write(b), read(b))
    placement = place(instructions, [b])
    assert placement.offsets[a] == placement.offsets[b]
    assert barriers(instructions, placement.offsets) == [0, 3, 3, 3]


def test_keys_and_values_conflict_within_a_layer_only() -> None:
    layer_0, layer_1 = ("2 heads", ROWS, 0, 1), ("2 heads", ROWS, 512, 513)
    assert masks_of(write(None, *layer_0), read(None, ALL, ALL, 0, 1)) == [0, 3]
    assert masks_of(write(None, *layer_0), read(None, ALL, ALL, 512, 513), write(None, *layer_1)) == [0, 0, 3]


def test_floats_and_quants_are_different_memory() -> None:
    x, q = buffer(), buffer(space="quants")
    instructions = steps(write(x), read(q))
    offsets = place(instructions, [buffer()]).offsets
    assert offsets[x] == offsets[q] == 0
    assert barriers(instructions, offsets) == [0, 0]


# -------------------------------------------------------------------------------------------------------- placement


def test_buffers_that_do_not_live_together_share_memory() -> None:
    a, b, c = buffer(), buffer(), buffer()
    placement = place(steps(write(a), (read(a), write(b)), (read(b), write(c)), read(c)), [c])
    assert placement.offsets[a] == placement.offsets[c] != placement.offsets[b]
    assert placement.floats == 2 * a.size


def test_only_buffers_of_one_shape_share_memory_so_that_padding_stays_zero() -> None:
    a = buffer(40)
    for other in (buffer(48), buffer(40, rows=16), buffer(40, private=True)):
        placement = place(steps(write(a), write(other)), [other])
        assert not overlapping(a, other, placement.offsets)


def test_the_result_stays_to_the_end() -> None:
    a, b, c = buffer(), buffer(), buffer()
    instructions = steps(write(a), write(b), write(c))
    assert place(instructions, [a]).floats == 2 * a.size  # b and c share
    assert place(instructions, [c]).floats == a.size


def test_each_space_has_its_own_size() -> None:
    x, q = buffer(rows=16), Buffer(32, 48, 8, "quants", private=True)
    placement = place(steps(write(x), write(q)), [x])
    assert (placement.floats, placement.quant_bytes) == (16 * 32, 8 * 48)


def random_instructions(seed: int) -> list[Instruction]:
    rng = np.random.default_rng(seed)
    shapes = itertools.product((32, 40), (8, 16), ("floats", "quants"), (False, True))
    pool = [buffer(cols, rows, space, private=private) for cols, rows, space, private in shapes]
    divisions = [ALL, PRIVATE, ROWS, "4 groups", "2 heads"]

    def access() -> Access:
        one, many = (str(division) for division in rng.choice(divisions, 2))
        start, stop = np.sort(rng.choice(33, 2, replace=False)).tolist()
        chosen = pool[rng.integers(len(pool))] if rng.random() < 0.9 else None
        return Access(chosen, bool(rng.integers(2)), one, many, start, stop)

    return steps(*(tuple(access() for _ in range(rng.integers(1, 4))) for _ in range(30)))


def real_instructions(name: str) -> list[Instruction]:
    builder = Builder(max_rows=40, max_out=8, n_threads=3, n_ctx=100)
    models = {
        "odd": lambda: tiny_llama("f32", dim=50, ffn_dim=71),
        "encoder": lambda: open_model(BERT),
        "mlp": lambda: mlp_of({"layer0.weight": (40, 33), "layer0.bias": (40,), "layer1.weight": (7, 40)}),
    }
    model = models[name]() if name in models else tiny_llama_of(name)
    lower(model).program(builder)
    return instructions_of(builder)[0]


PROGRAMS = {f"random {seed}": lambda seed=seed: random_instructions(seed) for seed in range(20)}
PROGRAMS |= {name: lambda name=name: real_instructions(name) for name in ("odd", "q8_0", "f16", "encoder", "mlp")}


def test_what_is_filled_from_outside_shares_memory_with_nothing_before_its_last_use() -> None:
    given, a, b = buffer(), buffer(), buffer()
    instructions = steps(write(a), (read(a), write(b)), (read(b), read(given)))
    offsets = place(instructions, [b], [given]).offsets
    assert len({offsets[x] for x in (given, a, b)}) == 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_has_a_race(name: str) -> None:
    instructions = PROGRAMS[name]()
    kept = next(a.buffer for i in reversed(instructions) for a in i.accesses if a.buffer is not None)
    offsets = place(instructions, [kept]).offsets
    masks = barriers(instructions, offsets)
    for mode in (ONE_ROW, MANY):
        assert races(instructions, offsets, masks, mode) == []
        assert races(instructions, offsets, [0] * len(masks), mode) != [], "without barriers there are"
        for i in [i for i, mask in enumerate(masks) if mask >> mode & 1]:
            fewer = [*masks[:i], masks[i] & ~(1 << mode), *masks[i + 1 :]]
            assert races(instructions, offsets, fewer, mode) != [], "every barrier is needed"


@pytest.mark.parametrize("name", PROGRAMS)
def test_buffers_that_live_together_have_no_memory_in_common(name: str) -> None:
    instructions = PROGRAMS[name]()
    spans = lifetimes(instructions)
    kept = next(iter(spans))
    spans[kept] = (spans[kept][0], len(instructions))
    placement = place(instructions, [kept])
    assert set(placement.offsets) == set(spans)
    sizes = {"floats": placement.floats, "quants": placement.quant_bytes}
    for b in spans:
        assert placement.offsets[b] % 64 == 0
        assert 0 <= placement.offsets[b] <= sizes[b.space] - b.size
    for a, b in itertools.combinations(spans, 2):
        together = spans[a][0] <= spans[b][1] and spans[b][0] <= spans[a][1]
        if together or a.private != b.private:
            assert not overlapping(a, b, placement.offsets)
        elif overlapping(a, b, placement.offsets):
            assert (a.cols, a.stride, a.rows, placement.offsets[a]) == (b.cols, b.stride, b.rows, placement.offsets[b])
