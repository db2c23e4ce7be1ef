import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.env import PAGE
from modelc.kernels.objects import python_function
from tests.kernels.float_math import F32, sincos
from tests.kernels.opcode_runner import objects
from tests.kernels.test_rope import angle_factors, columns, frequencies

f32 = np.float32
VARIANTS = [("pairs", 16, "f32"), ("pairs", 64, "f16"), ("halves", 80, "f16")]
HEADS, N_PAGES, LAYER_AT = 2, 6, 128
POSITIONS = 150
# (positions that stay, dropped, positions with keys and values)
MOVES = [(0, 1, 150), (4, 64, 150), (4, 37, 149), (70, 13, 128), (0, 149, 150), (10, 5, 15)]


def page_bytes(head_dim: int, kv: str) -> int:
    return LAYER_AT + HEADS * 2 * PAGE * head_dim * env.KV_BYTES[kv] + 64


def positions_of(cache: np.ndarray, pages: list[int], head_dim: int, kv: str) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values by position, each (positions of all pages, HEADS, head_dim) in the stored type."""
    dtype = np.float32 if kv == "f32" else np.float16
    keys, values = [], []
    for page in pages:
        layer = cache[page, LAYER_AT:-64].view(dtype).reshape(HEADS, 2, PAGE * head_dim)
        keys.append(layer[:, 0].reshape(HEADS, 4, head_dim, 16).transpose(1, 3, 0, 2).reshape(PAGE, HEADS, head_dim))
        values.append(layer[:, 1].reshape(HEADS, PAGE, head_dim).transpose(1, 0, 2))
    return np.concatenate(keys), np.concatenate(values)


def random_cache(head_dim: int, kv: str) -> np.ndarray:
    """Pages full of random numbers, with other layers' bytes before and behind them."""
    rng = np.random.default_rng(head_dim)
    cache = rng.integers(0, 256, (N_PAGES, page_bytes(head_dim, kv)), np.uint8)
    values = rng.standard_normal((N_PAGES, HEADS * 2 * PAGE * head_dim)).astype("f4" if kv == "f32" else "f2")
    cache[:, LAYER_AT:-64] = values.view(np.uint8)
    return cache


def shift(
    variant: tuple[str, int, str], cache: np.ndarray, old: list[int], new: list[int], move: tuple[int, int, int]
) -> None:
    style, head_dim, kv = variant
    factors, angles = np.full(3 * head_dim + 16, np.nan, f32), frequencies(head_dim)
    old_pages, new_pages = np.array(old), np.array(new)
    block = np.zeros(env.N_SHIFT, np.int64)
    block[env.SHIFT_KV] = cache.ctypes.data + LAYER_AT
    block[env.SHIFT_PAGE_BYTES] = page_bytes(head_dim, kv)
    block[[env.SHIFT_OLD_PAGES, env.SHIFT_NEW_PAGES]] = old_pages.ctypes.data, new_pages.ctypes.data
    block[env.SHIFT_HEADS] = HEADS
    block[[env.SHIFT_ANCHOR, env.SHIFT_DROPPED, env.SHIFT_COMPUTED]] = move
    block[[env.SHIFT_FREQUENCIES, env.SHIFT_FACTORS]] = angles.ctypes.data, factors.ctypes.data
    name = f"shift.{style}.{head_dim}.{kv}"
    python_function(objects().addresses([name])[name], 1, 0)(block.ctypes.data)


def rotated_back(keys: np.ndarray, style: str, dropped: int) -> F32:
    """Keys (positions, heads, head_dim) turned by the angle of `dropped` positions, in the order that `shift` has."""
    k = keys.astype(f32)
    first, second = columns(style, k.shape[-1])
    s, c = (v.astype(f32) for v in sincos(-np.float64(dropped) * frequencies(k.shape[-1])))
    out = np.empty_like(k)
    out[..., first] = k[..., first] * c - k[..., second] * s
    out[..., second] = k[..., first] * s + k[..., second] * c
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
    cache = random_cache(head_dim, kv)
    keys, values = positions_of(cache, old, head_dim, kv)
    expected = cache.copy()
    moved_keys = rotated_back(keys[anchor + dropped : computed], style, dropped).astype(keys.dtype)
    new_keys, new_values = positions_of(cache, new, head_dim, kv)
    new_keys[anchor : computed - dropped] = moved_keys
    new_values[anchor : computed - dropped] = values[anchor + dropped : computed]
    dtype = keys.dtype
    for i, page in enumerate(new):
        part = slice(PAGE * i, PAGE * i + PAGE)
        layer = expected[page, LAYER_AT:-64].view(dtype).reshape(HEADS, 2, -1)
        layer[:, 0] = new_keys[part].reshape(4, 16, HEADS, head_dim).transpose(2, 0, 3, 1).reshape(HEADS, -1)
        layer[:, 1] = new_values[part].transpose(1, 0, 2).reshape(HEADS, -1)
    shift(variant, cache, old, new, move)
    assert np.array_equal(cache, expected)


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
