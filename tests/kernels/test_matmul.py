"""Weights times activations, against a reference that decodes the source's own bytes in NumPy."""

import functools

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.kernels import env
from modelc.layout import to_lanes
from tests.kernels.activation_records import Quantized, quantize, records
from tests.kernels.float_math import F32, assert_same_bits, fma
from tests.kernels.opcode_runner import is_unwritten, run, unwritten
from tests.kernels.stored_blocks import BLOCK_TYPES, FLOAT_TYPES, Blocks, decode, decode_floats, random_weights

f32 = np.float32
SEGMENT_BLOCKS = 16
SEGMENT_COLS = 512
TOKENS = (2, 3, 4, 5, 6, 7, 8, 9, 17)

# Wider activations take another path in the tile; one type for each of its forms: zero point, min, two scales, both.
WIDE_TYPES = ("q8_0", "q4_1", "q6_k", "q2_k")
VARIANTS = [(name, "a8") for name in BLOCK_TYPES] + [(name, "a16") for name in WIDE_TYPES]


def block_product(w: Blocks, x: Quantized) -> F32:
    """(tokens, rows), in the order that `kernels.tiles` lays down."""
    tokens, n_blocks, _ = x.q.shape
    rows = len(w.codes)
    total = np.zeros((tokens, rows), f32)
    sums = x.d * x.total.astype(f32)
    q = x.q.astype(np.int64)
    for segment in range(0, n_blocks, SEGMENT_BLOCKS):
        acc = np.zeros((tokens, rows), f32)
        for b in range(segment, min(segment + SEGMENT_BLOCKS, n_blocks)):
            codes, d = w.codes[:, 32 * b : 32 * b + 32], x.d[:, b, None]
            if w.width == 32:
                dots = (q[:, b] @ codes.T).astype(f32)
                acc = fma(dots, w.scale[:, b] * d, acc)
                if w.minimum is not None:
                    acc = fma(-w.minimum[:, b], sums[:, b, None], acc)
                continue
            first, second = ((q[:, b, half] @ codes[:, half].T).astype(f32) for half in (slice(0, 16), slice(16, 32)))
            inner = fma(second, w.scale[:, 2 * b + 1], first * w.scale[:, 2 * b])
            acc = fma(inner, d, acc)
            if w.minimum is not None:
                for half, part in ((0, x.first[:, b]), (1, x.total[:, b] - x.first[:, b])):
                    scaled = part.astype(f32)[:, None] * d
                    acc = fma(-w.minimum[:, 2 * b + half], scaled, acc)
        total = total + acc
    return total


def float_product(w: F32, x: F32) -> F32:
    """(tokens, rows), in the order that `kernels.tiles` lays down."""
    total = np.zeros((len(x), len(w)), f32)
    for segment in range(0, w.shape[1], SEGMENT_COLS):
        acc = np.zeros_like(total)
        for k in range(segment, min(segment + SEGMENT_COLS, w.shape[1])):
            acc = fma(w[:, k], x[:, k, None], acc)
        total = total + acc
    return total


def activations(tokens: int, cols: int) -> F32:
    return np.random.default_rng(cols).standard_normal((tokens, cols), f32) * f32(3)


@functools.cache
def weights(name: str, rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
    """The source's bytes, and the same in the kernels' layout."""
    plain = random_weights(name, rows, cols, np.random.default_rng(rows + cols), spread=1.0)
    return plain, to_lanes(DTYPES[name], plain, rows, cols)


def block_cols(name: str) -> tuple[int, ...]:
    return (256, 768) if DTYPES[name].block_cols == 256 else (32, 544)


def share(groups: int, tid: int, n_threads: int) -> slice:
    """Output columns of a thread: its row groups, in pairs."""
    pairs = (groups + 1) // 2
    return slice(pairs * tid // n_threads * 32, min(pairs * (tid + 1) // n_threads * 32, groups * 16))


def multiply(
    name: str, activation: str, rows: int, x: F32, n_tokens: int, n_threads: int, n_out: int | None = None
) -> F32:
    """The opcode's output for the first `n_tokens` rows of x, in an array that has a row and 16 columns too many."""
    cols = x.shape[1]
    groups = (rows + 15) // 16
    stride = groups * 16 + 16
    out = unwritten(n_tokens + 1, stride)
    weight = weights(name, rows, cols)[1]
    environment = {env.WEIGHTS: weight, env.FLOATS: out, env.N_ROWS: n_tokens}
    environment |= {env.N_OUT: n_tokens if n_out is None else n_out}
    environment[env.QUANTS] = records(quantize(x[:n_tokens], activation))
    fields = [0, cols, groups, 0, 0, stride, int(n_out is not None), 1]
    run(f"matmul.{name}.{activation}", fields, environment, n_threads)
    return out


@pytest.mark.parametrize(("name", "activation"), VARIANTS)
def test_a_token_has_the_bits_of_the_formula_in_every_batch(name: str, activation: str) -> None:
    for cols in block_cols(name):
        x = activations(17, cols)
        for rows in (1, 15, 16, 17, 48):
            expected = block_product(decode(name, weights(name, rows, cols)[0], rows, cols), quantize(x, activation))
            for n_tokens in TOKENS:
                out = multiply(name, activation, rows, x, n_tokens, n_threads=n_tokens % 3 + 1)
                assert_same_bits(out[:n_tokens, :rows], expected[:n_tokens])
                assert (out[:n_tokens, rows:-16] == 0).all()
                assert is_unwritten(out[n_tokens:])
                assert is_unwritten(out[:, -16:])


@pytest.mark.parametrize(("name", "activation"), VARIANTS)
def test_a_token_alone_has_the_same_bits_and_each_thread_reads_its_own_copy(name: str, activation: str) -> None:
    rows, cols, n_threads = 80, block_cols(name)[-1], 3
    x = activations(n_threads, cols)  # another token in each thread's copy: its part of the output tells what it read
    quants = np.concatenate([records(quantize(x[t : t + 1], activation)) for t in range(n_threads)])
    plain, lanes = weights(name, rows, cols)
    expected = block_product(decode(name, plain, rows, cols), quantize(x, activation))
    for nth, private in ((1, 1), (2, 1), (3, 1), (3, 0)):
        out = unwritten(rows)
        environment = {env.WEIGHTS: lanes, env.FLOATS: out, env.QUANTS: quants, env.N_ROWS: 1}
        run(f"matmul.{name}.{activation}", [0, cols, rows // 16, 0, 0, rows, 0, private], environment, nth)
        for tid in range(nth):
            mine = share(rows // 16, tid, nth)
            assert_same_bits(out[mine], expected[tid if private else 0, mine])


def test_extreme_codes_and_activations_do_not_overflow() -> None:
    rows, cols = 16, 32
    plain = np.full((rows, 34), 0x80, np.uint8)  # codes -128
    plain[1::2, 2:] = 0x7F
    plain[:, :2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
    w = decode("q8_0", plain.reshape(-1), rows, cols)
    lanes = to_lanes(DTYPES["q8_0"], plain.reshape(-1), rows, cols)
    x = np.array([[127.0] * 32, [-127.0] * 32, [127.0, -127.0] * 16], f32)
    for activation in ("a8", "a16"):
        out = unwritten(3, 16)
        quantized = quantize(x, activation)
        environment = {env.WEIGHTS: lanes, env.FLOATS: out, env.QUANTS: records(quantized), env.N_ROWS: 3}
        run(f"matmul.q8_0.{activation}", [0, cols, 1, 0, 0, 16, 0, 1], environment)
        assert_same_bits(out, block_product(w, quantized))
        assert np.allclose(out, x @ w.values().T, rtol=1e-6)


def test_more_row_groups_than_stay_in_the_cache_are_all_computed() -> None:
    rows, cols = 16 * 40, 544  # 40 groups of 9 KB
    x = activations(11, cols)
    expected = block_product(decode("q8_0", weights("q8_0", rows, cols)[0], rows, cols), quantize(x, "a8"))
    for n_threads in (1, 2, 3):
        out = multiply("q8_0", "a8", rows, x, 11, n_threads)
        assert_same_bits(out[:11, :rows], expected)


@pytest.mark.parametrize("n_out", [0, 1, 3])
def test_only_rows_whose_logits_are_wanted_are_computed(n_out: int) -> None:
    x = activations(9, 32)
    expected = multiply("q8_0", "a8", 17, x, 9, 1)
    out = multiply("q8_0", "a8", 17, x, 9, 2, n_out)
    assert_same_bits(out[:n_out], expected[:n_out])
    assert is_unwritten(out[n_out:])


# -------------------------------------------------------------------------------------------------- float weights


@pytest.mark.parametrize("name", FLOAT_TYPES)
def test_float_weights_have_the_bits_of_the_formula_in_every_batch(name: str) -> None:
    for rows, cols in ((1, 1), (17, 33), (80, 100), (150, 7), (48, 513)):
        groups = (rows + 15) // 16
        plain, lanes = weights(name, rows, cols)
        ldx = (cols + 31) // 32 * 32 + 32
        x = unwritten(24, ldx)  # what stands behind the columns, and rows behind the last, must not matter
        x[:17, :cols] = activations(17, cols)
        expected = float_product(decode_floats(name, plain, rows, cols), x[:17, :cols])
        for n_tokens in (1, *TOKENS):
            for n_threads in (1, 3):
                memory = np.concatenate([x.reshape(-1), unwritten(n_tokens * groups * 16 + 1)])
                environment = {env.WEIGHTS: lanes, env.FLOATS: memory, env.N_ROWS: n_tokens}
                fields = [0, cols, groups, 0, x.size, groups * 16, 0, 0, ldx]
                run(f"matmul.{name}", fields, environment, n_threads)
                out = memory[x.size : -1].reshape(n_tokens, groups * 16)
                assert_same_bits(out[:, :rows], expected[:n_tokens])
                assert (out[:, rows:] == 0).all()
                assert is_unwritten(memory[-1:])


@pytest.mark.parametrize("private", [0, 1])
def test_with_float_weights_too_each_thread_reads_its_own_copy(private: int) -> None:
    rows, cols = 80, 100
    plain, lanes = weights("f32", rows, cols)
    x = activations(3, cols)
    expected = float_product(decode_floats("f32", plain, rows, cols), x)
    memory = np.concatenate([x.reshape(-1), unwritten(rows)])
    environment = {env.WEIGHTS: lanes, env.FLOATS: memory, env.N_ROWS: 1}
    run("matmul.f32", [0, cols, 5, 0, 3 * cols, rows, 0, private, cols], environment, n_threads=3)
    for tid in range(3):
        mine = share(5, tid, 3)
        assert_same_bits(memory[3 * cols :][mine], expected[tid if private else 0, mine])


def test_with_float_weights_too_only_wanted_rows_are_computed() -> None:
    lanes, x = weights("f32", 17, 33)[1], activations(9, 33)
    memory = np.concatenate([x.reshape(-1), unwritten(9 * 32)])
    environment = {env.WEIGHTS: lanes, env.FLOATS: memory, env.N_ROWS: 9, env.N_OUT: 2}
    run("matmul.f32", [0, 33, 2, 0, x.size, 32, 1, 0, 33], environment)
    out = memory[x.size :].reshape(9, 32)
    assert np.isfinite(out[:2]).all()
    assert is_unwritten(out[2:])


@pytest.mark.parametrize(("rows", "cols"), [(17, 1), (80, 12), (150, 7), (48, 513)])
def test_a_product_is_added_to_what_is_there(rows: int, cols: int) -> None:
    groups = (rows + 15) // 16
    plain, lanes = weights("f32", rows, cols)
    x = activations(17, cols)
    before = np.zeros((17, groups * 16), f32)
    before[:, :rows] = activations(17, rows)
    expected = before[:, :rows] + float_product(decode_floats("f32", plain, rows, cols), x)
    for n_tokens in (1, *TOKENS):
        for n_threads in (1, 3):
            memory = np.concatenate([x.reshape(-1), before[:n_tokens].reshape(-1), unwritten(1)])
            environment = {env.WEIGHTS: lanes, env.FLOATS: memory, env.N_ROWS: n_tokens}
            run("matmul_add.f32", [0, cols, groups, 0, x.size, groups * 16, 0, 0, cols], environment, n_threads)
            out = memory[x.size : -1].reshape(n_tokens, groups * 16)
            assert_same_bits(out[:, :rows], expected[:n_tokens])
            assert (out[:, rows:] == 0).all()
            assert is_unwritten(memory[-1:])
