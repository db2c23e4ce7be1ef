"""Every byte position of a record, against a plain re-statement of the record maps.

Blocks are read and records written here one number at a time, in no way that the package uses: codes come from the bit
positions that the GGUF block format gives them, and go to the bit positions that layout version 1 gives them.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from modelc.dtypes import DTYPES
from modelc.layout import to_lanes

Bytes = npt.NDArray[np.uint8]
Row = list[int]  # the bytes of one row's block
ROWS, LANES = 17, 16


# ---- record planes: `codes[lane][col]`


def nib(codes: list[Row]) -> Row:
    out = [0] * 256
    for lane in range(LANES):
        for col in range(32):
            word, k = divmod(col, 4)
            out[64 * (word // 2) + 4 * lane + k] |= codes[lane][col] << (4 if word % 2 else 0)
    return out


def bit(codes: list[Row]) -> Row:
    out = [0] * 64
    for lane in range(LANES):
        for col in range(32):
            out[4 * lane + col % 4] |= codes[lane][col] << col // 4
    return out


def two(codes: list[Row]) -> Row:
    out = [0] * 128
    for lane in range(LANES):
        for col in range(32):
            h, i = divmod(col // 4, 4)
            out[64 * h + 4 * lane + col % 4] |= codes[lane][col] << 2 * i
    return out


def byte_words(codes: list[Row]) -> Row:
    return [codes[lane][4 * word + k] for word in range(8) for lane in range(LANES) for k in range(4)]


def vector(rows: list[Row], at: int, nbytes: int = 1) -> Row:
    return [byte for row in rows for byte in row[at : at + nbytes]]


def per_lane(rows: list[Row], number: Callable[[Row], int]) -> Row:
    return [number(row) & 255 for row in rows]


# ---- codes of a row's block


def halves(row: Row, at: int) -> Row:
    return [row[at + c % 16] >> 4 * (c // 16) & 15 for c in range(32)]


def high_bits(row: Row, at: int) -> Row:
    return [row[at + c // 8] >> c % 8 & 1 for c in range(32)]


def field(row: Row, at: int, shift: int, bits: int) -> Row:
    return [row[at + c] >> shift & (1 << bits) - 1 for c in range(32)]


def k4_scale(row: Row, at: int, i: int) -> int:
    return row[at + i] & 63 if i < 4 else row[at + 4 + i] & 15 | row[at + i - 4] >> 6 << 4


def k4_minimum(row: Row, at: int, i: int) -> int:
    return row[at + 4 + i] & 63 if i < 4 else row[at + 4 + i] >> 4 | row[at + i] >> 6 << 4


def q3_scale(row: Row, i: int) -> int:
    low = row[96 + i] & 15 if i < 8 else row[96 + i - 8] >> 4
    return (low | (row[104 + i % 4] >> 2 * (i // 4) & 3) << 4) - 32


def iq4_xs_scale(row: Row, i: int) -> int:
    low = row[4 + i // 2] >> 4 * (i % 2) & 15
    return (low | ((row[2] | row[3] << 8) >> 2 * i & 3) << 4) - 32


# ---- records


def q4_0(rows: list[Row]) -> Row:
    return vector(rows, 0, 2) + nib([halves(row, 2) for row in rows])


def q4_1(rows: list[Row]) -> Row:
    return vector(rows, 0, 2) + vector(rows, 2, 2) + nib([halves(row, 4) for row in rows])


def q5_0(rows: list[Row]) -> Row:
    return vector(rows, 0, 2) + nib([halves(row, 6) for row in rows]) + bit([high_bits(row, 2) for row in rows])


def q5_1(rows: list[Row]) -> Row:
    scales = vector(rows, 0, 2) + vector(rows, 2, 2)
    return scales + nib([halves(row, 8) for row in rows]) + bit([high_bits(row, 4) for row in rows])


def q8_0(rows: list[Row]) -> Row:
    return vector(rows, 0, 2) + byte_words([[byte ^ 0x80 for byte in row[2:34]] for row in rows])


def k4_head(rows: list[Row]) -> Row:
    out = vector(rows, 0, 2) + vector(rows, 2, 2)
    for i in range(8):
        out += per_lane(rows, lambda row, i=i: k4_scale(row, 4, i))  # type: ignore[misc]
    for i in range(8):
        out += per_lane(rows, lambda row, i=i: k4_minimum(row, 4, i))  # type: ignore[misc]
    return out


def q4_k(rows: list[Row]) -> Row:
    out = k4_head(rows)
    for b in range(8):
        out += nib([field(row, 16 + 32 * (b // 2), 4 * (b % 2), 4) for row in rows])
    return out


def q5_k(rows: list[Row]) -> Row:
    out = k4_head(rows)
    for b in range(8):
        out += nib([field(row, 48 + 32 * (b // 2), 4 * (b % 2), 4) for row in rows])
        out += bit([field(row, 16, b, 1) for row in rows])
    return out


def q6_k(rows: list[Row]) -> Row:
    out = vector(rows, 208, 2)
    for i in range(16):
        out += vector(rows, 192 + i)
    for half in range(2):
        for low_at, low_shift, high_shift in ((0, 0, 0), (32, 0, 2), (0, 4, 4), (32, 4, 6)):
            out += nib([field(row, 64 * half + low_at, low_shift, 4) for row in rows])
            out += two([field(row, 128 + 32 * half, high_shift, 2) for row in rows])
    return out


def q2_k(rows: list[Row]) -> Row:
    out = vector(rows, 80, 2) + vector(rows, 82, 2)
    for i in range(16):
        out += vector(rows, i)
    for half in range(2):
        for shift in (0, 2, 4, 6):
            out += two([field(row, 16 + 32 * half, shift, 2) for row in rows])
    return out


def q3_k(rows: list[Row]) -> Row:
    out = vector(rows, 108, 2)
    for i in range(16):
        out += per_lane(rows, lambda row, i=i: q3_scale(row, i))  # type: ignore[misc]
    for b in range(8):
        out += two([field(row, 32 + 32 * (b // 4), 2 * (b % 4), 2) for row in rows])
        out += bit([field(row, 0, b, 1) for row in rows])
    return out


def iq4_xs(rows: list[Row]) -> Row:
    out = vector(rows, 0, 2)
    for i in range(8):
        out += per_lane(rows, lambda row, i=i: iq4_xs_scale(row, i))  # type: ignore[misc]
    for b in range(8):
        out += nib([halves(row, 8 + 16 * b) for row in rows])
    return out


RECORDS: dict[str, Callable[[list[Row]], Row]] = {
    "f32": lambda rows: vector(rows, 0, 4),
    "f16": lambda rows: vector(rows, 0, 2),
    "bf16": lambda rows: vector(rows, 0, 2),
    "q4_0": q4_0,
    "q4_1": q4_1,
    "q5_0": q5_0,
    "q5_1": q5_1,
    "q8_0": q8_0,
    "q2_k": q2_k,
    "q3_k": q3_k,
    "q4_k": q4_k,
    "q5_k": q5_k,
    "q6_k": q6_k,
    "iq4_nl": q4_0,
    "iq4_xs": iq4_xs,
}


@pytest.mark.parametrize("name", RECORDS)
def test_every_byte_is_where_the_record_map_says(name: str) -> None:
    dtype = DTYPES[name]
    n_blocks = 2
    cols = n_blocks * dtype.block_cols
    plain = np.random.default_rng(3).integers(0, 256, dtype.nbytes((ROWS, cols)), np.uint8)

    padded = np.zeros((32, n_blocks, dtype.block_bytes), np.uint8)
    padded[:ROWS] = plain.reshape(ROWS, n_blocks, dtype.block_bytes)
    expected: Row = []
    for group in range(2):
        for column in range(n_blocks):
            expected += RECORDS[name](padded[LANES * group : LANES * (group + 1), column].tolist())

    assert to_lanes(dtype, plain, ROWS, cols).tolist() == expected
