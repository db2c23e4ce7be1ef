"""Values into blocks: the bits against a plain reference, the errors against other quantizers."""

import functools
import hashlib

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadInputError
from modelc.layout import QUANTIZED_TYPES, dequantize, parallel, quantize
from tests.layout import plain_quantizer

F32 = npt.NDArray[np.float32]
BLOCK_TYPES = [name for name in QUANTIZED_TYPES if DTYPES[name].is_block]
SIMPLE_TYPES = [*plain_quantizer.SIGNED, *plain_quantizer.ABOVE]
ROWS, COLS = 64, 512
# Errors of llama.cpp's reference quantizers on `weights()`, measured with llama-cpp-python 0.3.36.
REFERENCE_ERRORS: dict[str, dict[str, float]] = {
    "q4_0": {"normal": 0.001715, "uniform": 0.03434, "heavy tails": 0.008293, "sparse": 0.0148},
    "q4_1": {"normal": 0.001552, "uniform": 0.01759, "heavy tails": 0.006692, "sparse": 0.03313},
    "q5_0": {"normal": 0.0008514, "uniform": 0.01713, "heavy tails": 0.004163, "sparse": 0.007254},
    "q5_1": {"normal": 0.0007561, "uniform": 0.008453, "heavy tails": 0.003255, "sparse": 0.01648},
    "q8_0": {"normal": 0.0001067, "uniform": 0.00217, "heavy tails": 0.0005257, "sparse": 0.0009165},
    "q2_k": {"normal": 0.005928, "uniform": 0.07849, "heavy tails": 0.0245, "sparse": 0.1284},
    "q3_k": {"normal": 0.002991, "uniform": 0.06259, "heavy tails": 0.01307, "sparse": 0.02203},
    "q4_k": {"normal": 0.001418, "uniform": 0.01679, "heavy tails": 0.006181, "sparse": 0.01512},
    "q5_k": {"normal": 0.0007206, "uniform": 0.008337, "heavy tails": 0.003143, "sparse": 0.01118},
    "q6_k": {"normal": 0.0003548, "uniform": 0.007619, "heavy tails": 0.001638, "sparse": 0.002504},
    "iq4_nl": {"normal": 0.00152, "uniform": 0.03468, "heavy tails": 0.006627, "sparse": 0.01658},
    "iq4_xs": {"normal": 0.001532, "uniform": 0.03495, "heavy tails": 0.006697, "sparse": 0.01708},
}
DIGESTS = {
    "q4_0": "9d19343b57234dff",
    "q4_1": "e4bc83126f2d2cad",
    "q5_0": "f2671bca2610331c",
    "q5_1": "8f2709c336118498",
    "q8_0": "e41c0f994de02499",
    "q2_k": "dcf708392ae03d14",
    "q3_k": "adff4f71f5a13974",
    "q4_k": "6ff485743f22fcae",
    "q5_k": "fa4e1135c3ee01dd",
    "q6_k": "da534b553d9d52a0",
    "iq4_nl": "753d65edddc078eb",
    "iq4_xs": "41b6ea69119cc8c0",
}


def weights(kind: str) -> F32:
    random = np.random.default_rng(5)
    if kind == "uniform":
        values = random.random((ROWS, COLS))
    elif kind == "heavy tails":
        values = random.standard_t(4, (ROWS, COLS)) * 0.05
    elif kind == "sparse":
        values = random.standard_normal((ROWS, COLS)) * (random.random((ROWS, COLS)) < 0.1)
    else:
        values = random.standard_normal((ROWS, COLS)) * 0.02
    return values.astype(np.float32)


KINDS = ("normal", "uniform", "heavy tails", "sparse")


def error_of(values: F32, back: F32) -> float:
    return float(np.sqrt(np.mean((back.astype(np.float64) - values) ** 2)))


def round_trip(name: str, values: F32) -> F32:
    dtype = DTYPES[name]
    return dequantize(dtype, quantize(dtype, values, values.shape), values.shape)


@pytest.mark.parametrize("name", SIMPLE_TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_bits_are_those_of_the_plain_reference(name: str, kind: str) -> None:
    values = weights(kind)
    expected = plain_quantizer.quantize(name, values.reshape(-1, 32))
    assert np.array_equal(quantize(DTYPES[name], values, values.shape), expected.reshape(-1))


@pytest.mark.parametrize("name", SIMPLE_TYPES)
def test_bits_are_those_of_the_plain_reference_at_every_magnitude(name: str) -> None:
    random = np.random.default_rng(6)
    exponents = random.integers(-40, 15, (4096, 1))
    values = (random.standard_normal((4096, 32)) * 2.0**exponents).clip(-65504, 65504).astype(np.float32)
    expected = plain_quantizer.quantize(name, values)
    assert np.array_equal(quantize(DTYPES[name], values, values.shape), expected.reshape(-1))


@pytest.mark.parametrize("name", SIMPLE_TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_below_those_of_the_gguf_package(name: str, kind: str) -> None:
    values, type_ = weights(kind), gguf.GGMLQuantizationType[name.upper()]
    theirs = gguf.quants.dequantize(gguf.quants.quantize(values, type_), type_)
    assert error_of(values, round_trip(name, values)) < 0.97 * error_of(values, theirs)


@pytest.mark.parametrize("name", BLOCK_TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_not_above_those_of_llama_cpp(name: str, kind: str) -> None:
    assert error_of(weights(kind), round_trip(name, weights(kind))) < REFERENCE_ERRORS[name][kind]


@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_values_of_the_type_itself_lose_little(name: str) -> None:
    """Another scale may do as well for values that lie on a grid already."""
    values = round_trip(name, weights("normal"))
    assert error_of(values, round_trip(name, values)) < 0.35 * error_of(weights("normal"), values)


@pytest.mark.parametrize("name", SIMPLE_TYPES)
def test_values_on_the_grid_of_a_full_range_are_kept(name: str) -> None:
    least, most = plain_quantizer.SIGNED.get(name, (0, plain_quantizer.ABOVE.get(name, 0)))
    codes = np.random.default_rng(7).integers(least, most + 1, (ROWS, COLS)).reshape(-1, 32)
    codes[:, 0], codes[:, 1] = least, most
    values = (codes.reshape(ROWS, COLS) * 0.125).astype(np.float32)
    assert np.array_equal(round_trip(name, values), values)


@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_bytes_do_not_depend_on_the_number_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_THREAD_BYTES", 1)
    values = weights("normal")
    results = []
    for threads in range(1, 4):
        monkeypatch.setattr(parallel, "usable_cpus", functools.partial(int, threads))
        results.append(quantize(DTYPES[name], values, values.shape).tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_zeros_stay_zeros(name: str) -> None:
    assert (round_trip(name, np.zeros((2, 256), np.float32)) == 0).all()
    assert (round_trip(name, np.full((2, 256), -0.0, np.float32)) == 0).all()


@pytest.mark.parametrize("name", BLOCK_TYPES)
@pytest.mark.parametrize("magnitude", [1e-45, 1e-38, 1e-20, 1e-8])
def test_values_too_small_for_a_scale_come_near_zero(name: str, magnitude: float) -> None:
    values = (weights("normal") * 50 * magnitude).astype(np.float32)
    back = round_trip(name, values)
    assert np.isfinite(back).all()
    assert np.abs(back).max() <= 8 * max(float(np.abs(values).max()), 2.0**-24)


@pytest.mark.parametrize("name", BLOCK_TYPES)
@pytest.mark.parametrize("value", [0.0123, -3.5, 65504.0, -65504.0])
def test_one_value_everywhere_is_nearly_kept(name: str, value: float) -> None:
    back = round_trip(name, np.full((1, 256), value, np.float32))
    assert np.abs(back / np.float32(value) - 1).max() < 0.01


@pytest.mark.parametrize("name", BLOCK_TYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 65505.0, -1e30])
def test_what_a_scale_cannot_hold_is_refused(name: str, value: float) -> None:
    values = weights("normal")
    values[3, 7] = value
    with pytest.raises(BadInputError) as error:
        quantize(DTYPES[name], values, values.shape)
    assert error.value.param == "values"


def test_float16_keeps_nan_and_infinities_and_refuses_what_it_cannot_hold() -> None:
    values = np.array([[1.5, np.nan, np.inf, -np.inf, 2.0**-24, 65504]], np.float32)
    halves = quantize(DTYPES["f16"], values, values.shape).view(np.float16)
    assert np.array_equal(halves, values[0].astype(np.float16), equal_nan=True)
    with pytest.raises(BadInputError, match="float16"):
        quantize(DTYPES["f16"], np.full((1, 2), 65520, np.float32), (1, 2))


def test_bfloats_are_the_nearest_half_to_even() -> None:
    bits = np.array([0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F800000, 0x7F800001, 0xFFFFFFFF], np.uint32)
    values = bits.view(np.float32).reshape(1, -1)
    upper = quantize(DTYPES["bf16"], values, values.shape).view(np.uint16)
    assert upper.tolist() == [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7FC0, 0xFFFF]


def test_wrong_arguments_are_refused() -> None:
    values = np.zeros((2, 64), np.float32)
    for dtype, array, shape in (
        ("q4_0", values.astype(np.float64), (2, 64)),
        ("q4_0", values, (2, 32)),
        ("q4_k", values, (2, 64)),
        ("i8", values, (2, 64)),
    ):
        with pytest.raises(BadInputError):
            quantize(DTYPES[dtype], array, shape)


@pytest.mark.parametrize("shape", [(0, 256), (3, 0)])
def test_empty_tensors_have_no_bytes(shape: tuple[int, ...]) -> None:
    assert quantize(DTYPES["q4_k"], np.zeros(shape, np.float32), shape).size == 0


@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_bits_are_the_same_on_every_cpu(name: str) -> None:
    """The digests are those of plain SSE2, AVX2 and AVX-512 code."""
    whole = np.random.default_rng(8).integers(-(1 << 20), 1 << 20, (64, 512))
    values = (whole * 2.0 ** np.arange(-50, 14)[:, None].clip(-50, -5)).astype(np.float32)
    blocks = quantize(DTYPES[name], values, values.shape)
    assert hashlib.blake2b(blocks.tobytes(), digest_size=8).hexdigest() == DIGESTS[name]
