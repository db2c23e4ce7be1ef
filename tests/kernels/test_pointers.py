import numpy as np
import pytest

from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, f64_ptr, i8_ptr, i16_ptr, i32_ptr, i64_ptr, offset, u8_ptr
from tests.kernels.opcode_runner import float_bits, run

POINTERS = {
    "f64": (np.float64, [1.5, -2.5, 1e300]),
    "f32": (np.float32, [1.5, -2.5, 1e30]),
    "i64": (np.int64, [1, -2, 1 << 62]),
    "i32": (np.int32, [1, -2, -(1 << 31)]),
    "i16": (np.int16, [1, -2, 32767]),
    "i8": (np.int8, [1, -2, -128]),
    "u8": (np.uint8, [1, 254, 255]),
}


@kernel
def copy_elements(I, E, tid, nth):
    """Elements 1 and 2 of each source to elements 2 and 1 of its target; I: 2 + 2k source, 3 + 2k target."""
    for i in (1, 2):
        f64_ptr(I[3])[3 - i] = f64_ptr(I[2])[i]
        f32_ptr(I[5])[3 - i] = f32_ptr(I[4])[i]
        i64_ptr(I[7])[3 - i] = offset(i64_ptr(I[6]), 1)[i - 1]
        i32_ptr(I[9])[3 - i] = offset(i32_ptr(I[8]), i)[0]
        offset(i16_ptr(I[11]), 3 - i)[0] = i16_ptr(I[10])[i]
        offset(i8_ptr(I[13]), 1)[2 - i] = i8_ptr(I[12])[i]
        u8_ptr(I[15])[3 - i] = offset(u8_ptr(I[14]), 2)[i - 2]


@pytest.fixture(scope="module")
def copies() -> dict[str, np.ndarray]:
    sources = {name: np.array(values, dtype) for name, (dtype, values) in POINTERS.items()}
    targets = {name: np.zeros(4, dtype) for name, (dtype, _) in POINTERS.items()}
    run(copy_elements, [array for name in POINTERS for array in (sources[name], targets[name])])
    return targets


@pytest.mark.parametrize("name", POINTERS)
def test_a_pointer_reads_and_writes_elements_of_its_type(name: str, copies: dict[str, np.ndarray]) -> None:
    _, values = POINTERS[name]
    assert copies[name].tolist() == np.array([0, values[2], values[1], 0], copies[name].dtype).tolist()


@kernel
def floats_of_bits(I, E, tid, nth):
    for i in range(I[2]):
        f32_ptr(I[4])[i] = f32_of_bits(i64_ptr(I[3])[i])


def test_an_instruction_carries_a_float_in_its_low_bits() -> None:
    values = np.array([0.0, -0.0, 1e-5, -1.0, 3.4e38, np.inf], np.float32)
    bits = np.array([float_bits(v) for v in values] + [float_bits(2.0) | 5 << 40], np.int64)
    out = np.zeros(7, np.float32)
    run(floats_of_bits, [7, bits, out])
    assert out.tobytes() == values.tobytes() + np.float32(2).tobytes()
