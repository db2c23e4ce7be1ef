"""Damaged and hostile GGUF files: each is one clear error, found before memory is asked for."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from modelc.errors import BadFileError
from modelc.formats import gguf
from tests.formats.gguf_builder import (
    ARRAY,
    BOOL,
    F64,
    GGML_F32,
    GGML_Q4_0,
    STRING,
    U8,
    Gguf,
    array,
    small_gguf,
    string,
)

U64_MAX = (1 << 64) - 1


def with_tensor(dims: list[int], ggml_type: int = GGML_F32, offset: int = 0, name: str | bytes = "w") -> Gguf:
    return Gguf(data=bytes(64)).row(name, dims, ggml_type, offset)


def aligned(value: int) -> Gguf:
    return Gguf().u32("general.alignment", value)


# What is wrong with the file -> the message, and the file.
HOSTILE: dict[str, tuple[str, Callable[[], Gguf]]] = {
    # counts
    "2^40 tensors": ("too many tensors: .*offset 8: got 1099511627776", lambda: Gguf(n_tensors=1 << 40)),
    "2^64-1 tensors": (f"too many tensors: .*got {U64_MAX}", lambda: Gguf(n_tensors=U64_MAX)),
    "2^40 keys": ("too many metadata keys: .*offset 16: got 1099511627776", lambda: Gguf(n_keys=1 << 40)),
    "2^64-1 keys": (f"too many metadata keys: .*got {U64_MAX}", lambda: Gguf(n_keys=U64_MAX)),
    "more keys than there are": ("a metadata key of wrong length: .*got 0", lambda: Gguf(n_keys=2).text("a", "b")),
    "array of 2^40 numbers": (
        "too many elements: .*got 1099511627776",
        lambda: Gguf().key("a", ARRAY, array(F64, [], 1 << 40)),
    ),
    "array of 2^40 strings": ("too many elements", lambda: Gguf().key("a", ARRAY, array(STRING, [], 1 << 40))),
    "array of 2^61 doubles": ("too many elements", lambda: Gguf().key("a", ARRAY, array(F64, [], 1 << 61))),
    "array of 2^64-1 bytes": ("too many elements", lambda: Gguf().key("a", ARRAY, array(U8, [], U64_MAX))),
    "array a byte too long": ("too many elements", lambda: Gguf().key("a", ARRAY, array(U8, [b"x"], 2 + 32))),
    # strings
    "key of 2^64-1 bytes": ("metadata key is too long", lambda: Gguf(keys=[string("k", U64_MAX) + bytes(32)])),
    "string of 2^64-1 bytes": (
        f"a string is too long: .*got {U64_MAX} bytes",
        lambda: Gguf().key("a", STRING, string("b", U64_MAX)),
    ),
    "string of 2^63 bytes": ("a string is too long", lambda: Gguf().key("a", STRING, string("b", 1 << 63))),
    "string of an array": (
        f"a string is too long: .*got {U64_MAX - 7} bytes",
        lambda: Gguf().key("a", ARRAY, array(STRING, [string("x"), string("y", U64_MAX - 7)])),
    ),
    "array that ends early": (
        "the file ends inside a string: .*bytes",
        lambda: Gguf(alignment=1).key("a", ARRAY, array(STRING, [string("x" * 40)], 3)),
    ),
    "empty key": ("a metadata key of wrong length: .*got 0", lambda: Gguf().text("", "b")),
    "endless key": ("a metadata key of wrong length", lambda: Gguf().text("k" * 70_000, "b")),
    # metadata
    "key twice": ("a metadata key appears twice: .*got 'a'", lambda: Gguf().text("a", "b").text("a", "c")),
    "unknown type": ("unknown metadata type: .*got 13", lambda: Gguf().key("a", 13, bytes(32))),
    "unknown element type": ("unknown metadata type: .*got 99", lambda: Gguf().key("a", ARRAY, pack("<IQ", 99, 0))),
    "truth value of 2": ("neither false nor true: .*got 2", lambda: Gguf().key("a", BOOL, b"\2")),
    "arrays without end": ("nested too deeply", lambda: Gguf().key("a", ARRAY, pack("<IQ", ARRAY, 1) * 10_000)),
    "alignment of zero": ("general.alignment is wrong: .*got 0", lambda: aligned(0)),
    "alignment of 48": ("general.alignment is wrong: .*got 48", lambda: aligned(48)),
    "alignment of 2^31": ("general.alignment is wrong: .*got 2147483648", lambda: aligned(1 << 31)),
    "alignment that is text": (
        "general.alignment is wrong: .*got '32'",
        lambda: Gguf().text("general.alignment", "32"),
    ),
    "architecture that is a list": (
        r"general.architecture is wrong: .*got \['x'\]",
        lambda: Gguf().strings("general.architecture", ["x"]),
    ),
    # tensors
    "name twice": (
        "two tensors have the same name: .*got 'w'",
        lambda: with_tensor([1]).row("w", [1], GGML_F32, 32),
    ),
    "nameless tensor": ("a tensor name of wrong length", lambda: with_tensor([1], name="")),
    "zero dimension": (r"a wrong shape: .*tensor 'w': got \[3, 0\]", lambda: with_tensor([0, 3])),
    "five dimensions": ("too many dimensions: .*got 5", lambda: with_tensor([1, 1, 1, 1, 1])),
    "2^32-1 dimensions": (
        "too many dimensions: .*got 4294967295",
        lambda: Gguf(n_tensors=1, rows=[string("w") + b"\xff" * 64]),
    ),
    "dimension of 2^63": ("more elements than the file has room for", lambda: with_tensor([1 << 63])),
    "dimensions whose product is 2^64": ("more elements than", lambda: with_tensor([1 << 32, 1 << 32])),
    "dimensions whose product is 2^256": ("more elements than", lambda: with_tensor([1 << 62] * 4)),
    "part of a block": (r"a wrong shape: .*multiple of 32 for q4_0", lambda: with_tensor([33], GGML_Q4_0)),
    "block without dimensions": ("a wrong shape: .*multiple of 32", lambda: with_tensor([], GGML_Q4_0)),
    "unknown tensor type": ("unknown tensor type: .*tensor 'w': got type 4242", lambda: with_tensor([1], 4242)),
    "unaligned tensor": ("an unaligned tensor: .*got offset 4", lambda: with_tensor([1], offset=4)),
    "offset near 2^64": ("runs past the end of the file", lambda: with_tensor([1], offset=U64_MAX - 31)),
    "overlap": ("tensors overlap: .*tensor 'v'", lambda: with_tensor([16]).row("v", [1], GGML_F32, 32)),
    "same place": ("tensors overlap", lambda: with_tensor([1]).row("v", [1], GGML_F32, 0)),
    "data a byte short": (
        "runs past the end of the file: .*tensor 'w': got 127 bytes",
        lambda: Gguf(data=bytes(63)).row("w", [16], GGML_F32, 0),
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_clear_error(case: str, tmp_path: Path) -> None:
    message, make = HOSTILE[case]
    path = tmp_path / "x.gguf"
    path.write_bytes(make().build())
    tracemalloc.start()
    with pytest.raises(BadFileError, match=message) as caught:
        gguf.read(path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 4_000_000
    error = caught.value
    assert error.path == str(path)
    assert error.offset is not None or error.tensor is not None or "metadata key" in str(error)
    assert error.got is not None
    assert error.expected is not None or "twice" in str(error) or "same name" in str(error)


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"<!DOCTYPE html><html>" + bytes(500), "an HTML page"),
        (b"\n\n  <HTML lang=en>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b'{"error":"Entry not found"}', "JSON text"),
        (bytes(5000), "zero bytes"),
        (b"FUGG" + bytes(30), "a big-endian GGUF file"),
        (b"\x01\x02", "the bytes 01 02"),
        (b"MODELC\x1a\n" + bytes(100), r"a \.modelc file"),
    ],
)
def test_something_else_under_the_name_is_called_what_it_is(tmp_path: Path, content: bytes, looks: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(BadFileError, match=f"not a GGUF file: .*got {looks}.*expected GGUF; "):
        gguf.read(path)


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    whole = small_gguf().build()
    path = tmp_path / "x.gguf"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(BadFileError):
            gguf.read(path)
    path.write_bytes(whole)
    assert len(gguf.read(path).tensors) == 3


def test_many_small_arrays_cannot_ask_for_more_than_the_file_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelc.formats.gguf_values.MAX_ELEMENTS", 1000)
    path = tmp_path / "x.gguf"
    empty = array(U8, [])
    path.write_bytes(
        Gguf().key("a", ARRAY, array(ARRAY, [empty] * 600)).key("b", ARRAY, array(ARRAY, [empty] * 401)).build()
    )
    with pytest.raises(BadFileError, match=r"too many elements: .*got 401, expected at most 400"):
        gguf.read(path)
