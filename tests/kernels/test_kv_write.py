import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.float_math import F32
from tests.kernels.kv_records import Records, exact_keys, head_dtype, store_keys, store_values
from tests.kernels.opcode_runner import run

f32 = np.float32
HEADS, N_PAGES, LAYER_AT = 3, 4, 64
SLOTS = np.array([1, 1, 1, 0, 0, 2, 2, 2, 2])
POSITIONS = np.array([62, 63, 64, 0, 1, 15, 16, 17, 18])
PAGES = np.array([[3, -1], [0, 2], [1, -1]])


def vectors(rows: int, head_dim: int) -> F32:
    """Keys and values (rows, 2, HEADS, head_dim); the first ones have what is hard to store."""
    x = np.random.default_rng(rows).standard_normal((rows, 2, HEADS, head_dim), f32)
    x[0, :, 0, :4] = [65520.0, 1e-8, 6e-8, 1.0009765]  # over the largest half, and where halves are rounded
    x[0, :, 1] = 0
    x[0, :, 2] = [63.5, 62.5, -0.5, 1.5, -127.0, *[0.25] * (head_dim - 5)]  # ties of int8 codes
    if rows > 4:
        x[1, :, 0, :3] = [np.inf, -np.inf, 5.0]
        x[2, :, 1] *= f32(1e-31)
        x[3, :, 1, 1:] *= f32(1e-6)
        x[4, :, 2] *= f32(1e38)
    return x


def written(x: F32, kv: str, n_threads: int) -> Records:
    """Pages as `kv_write` leaves them, 0xAA where nothing was written."""
    rows, _, _, head_dim = x.shape
    source = np.zeros((rows, 2 * HEADS * head_dim + 5), f32)
    source[:, :-5] = x.reshape(rows, -1)
    pages = empty_pages(head_dim, kv)
    environment = {env.FLOATS: source, env.KV: pages, env.PAGES: PAGES, env.PAGES_PER_SLOT: 2}
    environment |= {env.PAGE_BYTES: pages.itemsize, env.SLOTS: SLOTS, env.POSITIONS: POSITIONS, env.N_ROWS: rows}
    fields = [0, source.shape[1], HEADS, HEADS * head_dim, LAYER_AT]
    run(f"kv_write.{head_dim}.{kv}", fields, environment, n_threads)
    return pages


def empty_pages(head_dim: int, kv: str) -> Records:
    page = np.dtype([("before", "u1", LAYER_AT), ("heads", head_dtype(head_dim, kv), HEADS), ("after", "u1", 32)])
    return np.full(N_PAGES * page.itemsize, 0xAA, np.uint8).view(page)


@pytest.mark.parametrize(("head_dim", "kv"), [(16, "f32"), (16, "f16"), (80, "f16"), (80, "int8"), (16, "mixed")])
@pytest.mark.parametrize("rows", [1, 9])
def test_keys_and_values_go_to_their_place_in_their_page(head_dim: int, kv: str, rows: int) -> None:
    x = vectors(rows, head_dim)
    expected = empty_pages(head_dim, kv)
    for t in range(rows):
        heads = expected["heads"][PAGES[SLOTS[t], POSITIONS[t] // 64]]
        store_keys(heads, POSITIONS[t] % 64, x[t, 0])
        store_values(heads, POSITIONS[t] % 64, x[t, 1])
    for n_threads in (1, 2, 3):
        assert written(x, kv, n_threads).tobytes() == expected.tobytes()


@pytest.mark.parametrize("kv", ["f32", "f16", "int8", "mixed"])
def test_nothing_that_is_stored_is_infinite(kv: str) -> None:
    heads = written(np.full((1, 2, HEADS, 16), np.inf, f32), kv, 1)["heads"][PAGES[1, 0]]
    for name in heads.dtype.names or ():
        stored = heads[name]
        at_62 = stored[:, 3, :, 14] if stored.ndim == 4 else stored[:, 62]
        assert np.isfinite(at_62).all()
        assert (at_62 > 0).all()


def test_codes_are_within_half_a_step() -> None:
    x = np.random.default_rng(3).standard_normal((9, 2, HEADS, 80), f32)
    heads = written(x, "int8", 1)["heads"][PAGES[2, 0]]
    for at, (keys, values) in zip(POSITIONS[5:], x[5:], strict=True):
        back = heads["value_codes"][:, at] * heads["value_scales"][:, at, None]
        assert (np.abs(back - values).max(-1) <= np.abs(values).max(-1) / 127 * 0.5001).all()
        assert (np.abs(exact_keys(heads, at) - keys).max(-1) <= np.abs(keys).max(-1) / 127 * 0.5001).all()
