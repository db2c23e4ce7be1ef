import functools

import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.env import PAGE
from modelc.kernels.objects import python_function
from tests.kernels.float_math import F32, sincos
from tests.kernels.kv_records import Records, copy_value, exact_keys, head_dtype, store_keys, store_values
from tests.kernels.opcode_runner import objects
from tests.kernels.test_rope import angle_factors, columns, frequencies

f32 = np.float32
VARIANTS = [
    ("pairs", 16, "f32"),
    ("pairs", 64, "f16"),
    ("halves", 80, "f16"),
    ("halves", 64, "int8"),
    ("pairs", 16, "mixed"),
]
HEADS, N_PAGES, LAYER_AT = 2, 6, 128
# (positions that stay, dropped, positions with keys and values)
MOVES = [(0, 1, 150), (4, 64, 150), (4, 37, 149), (70, 13, 128), (0, 149, 150), (10, 5, 15)]


@functools.cache
def random_cache(head_dim: int, kv: str) -> Records:
    """Pages full of keys and values, with other layers' bytes before and behind them."""
    page = np.dtype([("before", "u1", LAYER_AT), ("heads", head_dtype(head_dim, kv), HEADS), ("after", "u1", 64)])
    rng = np.random.default_rng(head_dim)
    cache = rng.integers(0, 256, N_PAGES * page.itemsize, np.uint8).view(page)
    for heads in cache["heads"]:
        for at in range(PAGE):
            store_keys(heads, at, rng.standard_normal((HEADS, head_dim), f32))
            store_values(heads, at, rng.standard_normal((HEADS, head_dim), f32))
    return cache


def shift(
    variant: tuple[str, int, str],
    cache: Records,
    old: list[int],
    new: list[int],
    move: tuple[int, int, int],
    rotated: int | None = None,
) -> None:
    style, head_dim, kv = variant
    rotated = head_dim if rotated is None else rotated
    factors, angles = np.full(3 * head_dim + 16, np.nan, f32), frequencies(rotated)
    old_pages, new_pages = np.array(old), np.array(new)
    block = np.zeros(env.N_SHIFT, np.int64)
    block[env.SHIFT_KV] = cache.ctypes.data + LAYER_AT
    block[env.SHIFT_PAGE_BYTES] = cache.itemsize
    block[[env.SHIFT_OLD_PAGES, env.SHIFT_NEW_PAGES]] = old_pages.ctypes.data, new_pages.ctypes.data
    block[env.SHIFT_HEADS] = HEADS
    block[[env.SHIFT_ANCHOR, env.SHIFT_DROPPED, env.SHIFT_COMPUTED]] = move
    block[[env.SHIFT_FREQUENCIES, env.SHIFT_FACTORS]] = angles.ctypes.data, factors.ctypes.data
    block[env.SHIFT_ROTATED] = rotated
    name = f"shift.{style}.{head_dim}.{kv}"
    python_function(objects().addresses([name])[name], 1, 0)(block.ctypes.data)


def rotated_back(keys: F32, style: str, dropped: int) -> F32:
    """Keys (..., head_dim) turned by the angle of `dropped` positions, in the order that `shift` has."""
    first, second = columns(style, keys.shape[-1])
    s, c = (v.astype(f32) for v in sincos(-np.float64(dropped) * frequencies(keys.shape[-1])))
    out = np.empty_like(keys)
    out[..., first] = keys[..., first] * c - keys[..., second] * s
    out[..., second] = keys[..., first] * s + keys[..., second] * c
    return out


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("move", MOVES, ids=str)
@pytest.mark.parametrize("new", [[2, 0, 5], [1, 3, 5], [2, 3, 4]], ids=["in place", "copied", "partly"])
def test_what_is_behind_the_dropped_positions_moves_down(
    variant: tuple[str, int, str], move: tuple[int, int, int], new: list[int]
) -> None:
    style, head_dim, kv = variant
    anchor, dropped, computed = move
    old = [2, 0, 5]
    cache = random_cache(head_dim, kv).copy()
    before, expected = cache["heads"].copy(), cache.copy()
    for target in range(anchor, computed - dropped):
        source = target + dropped
        heads, to_heads = before[old[source // PAGE]], expected["heads"][new[target // PAGE]]
        store_keys(to_heads, target % PAGE, rotated_back(exact_keys(heads, source % PAGE), style, dropped))
        copy_value(heads, source % PAGE, to_heads, target % PAGE)
    shift(variant, cache, old, new, move)
    assert cache.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rotated", [0, 32])
def test_columns_that_are_not_rotated_move_as_they_are(rotated: int) -> None:
    variant = ("halves", 80, "f32")
    cache = random_cache(80, "f32").copy()
    before = cache["heads"].copy()
    shift(variant, cache, [2, 0, 5], [2, 0, 5], (4, 37, 60), rotated)
    for target in range(4, 23):
        key, old = (exact_keys(heads[2], at) for heads, at in ((cache["heads"], target), (before, target + 37)))
        assert (key[:, rotated:] == old[:, rotated:]).all()
        assert (key[:, :rotated] == rotated_back(old[:, :rotated], "halves", 37)).all()


@pytest.mark.parametrize("style", ["pairs", "halves"])
def test_a_shifted_key_is_the_one_of_its_new_position(style: str) -> None:
    first, second = columns(style, 64)
    key = np.random.default_rng(1).standard_normal(64, f32)
    partner = np.empty_like(key)
    partner[first], partner[second] = key[second], key[first]

    def at(position: int) -> F32:
        factors = angle_factors(style, 64, np.array([position]), 1.0)[0]
        return key * factors[0] + partner * factors[1]

    shifted = rotated_back(at(3000)[None, None], style, 2000)[0, 0]
    assert np.abs(shifted - at(1000)).max() < 1e-6
