"""The header of a Safetensors file: parsed, and every tensor's place and size checked.

Source: the Safetensors format, version of 2023 (a u64 length, JSON, tensor data). An entry is
`"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}`; the tensors fill the data without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from mmap import mmap
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

from modelc.dtypes import DTYPES, DType
from modelc.errors import BadFileError, UnsupportedError
from modelc.formats import json_text
from modelc.formats.signature import HEAD_BYTES, looks_like
from modelc.ir import JSON, MAX_DIMS, MAX_INT

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # as the format has it
MAX_TENSORS = 1 << 18
METADATA_KEY = "__metadata__"
JSON_KEYS = (
    "modelc.json_keys"  # a JSON list: the keys of the metadata that modelc wrote as JSON, strings being all it may
)

_HINT = "the file is damaged or not complete: download it again"

_DTYPES = {
    "F64": DTYPES["f64"],
    "F32": DTYPES["f32"],
    "F16": DTYPES["f16"],
    "BF16": DTYPES["bf16"],
    "F8_E4M3": DTYPES["f8_e4m3"],
    "F8_E5M2": DTYPES["f8_e5m2"],
    "I64": DTYPES["i64"],
    "I32": DTYPES["i32"],
    "I16": DTYPES["i16"],
    "I8": DTYPES["i8"],
    "U8": DTYPES["u8"],
    "BOOL": DTYPES["bool"],
}
_OTHER_DTYPES = frozenset({"U16", "U32", "U64", "C64", "F4", "F6_E2M3", "F6_E3M2", "F8_E8M0"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor; `begin` and `end` are its bytes, counted from the start of the file."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int


def looks_like_header(data: mmap | memoryview) -> bool:
    """Whether a file begins with the length of a header and a JSON object, without parsing it."""
    n_bytes = int.from_bytes(data[:LENGTH_BYTES], "little")
    return 2 <= n_bytes <= min(MAX_HEADER_BYTES, len(data) - LENGTH_BYTES) and bytes(data[8:9]) == b"{"


def read_header(data: memoryview, path: Path) -> tuple[dict[str, JSON], list[Entry]]:
    """The metadata and the tensors of a file.

    Args:
        data: The whole file.
        path: Its path, for messages.

    Returns:
        The content of `__metadata__`, and the tensors in the order of their bytes.

    Raises:
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: An element type that modelc does not read, or too many dimensions.
    """
    fields = _parse(data, path)
    metadata = fields.pop(METADATA_KEY, {})
    if type(metadata) is not dict or not all(type(value) is str for value in metadata.values()):
        got = short_repr(metadata)
        raise BadFileError("__metadata__ is wrong", path=path, expected="an object of strings", got=got, hint=_HINT)
    metadata = _with_json(metadata, path)
    if len(fields) > MAX_TENSORS:
        raise BadFileError("too many tensors", path=path, expected=f"at most {MAX_TENSORS}", got=len(fields))
    start = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    entries = [_entry(name, entry, start, path) for name, entry in fields.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    _check_places(entries, start, len(data), path)
    return metadata, entries


def _with_json(metadata: dict[str, JSON], path: Path) -> dict[str, JSON]:
    """The metadata with the values that were written as JSON."""
    listed = metadata.pop(JSON_KEYS, None)
    if not isinstance(listed, str):
        return metadata
    keys = json_text.parse(listed.encode("utf-8", "surrogatepass"), path, JSON_KEYS)
    if type(keys) is not list or not all(type(key) is str and key in metadata for key in keys):
        raise BadFileError("the metadata are wrong", path=path, expected=f"a list of keys as {JSON_KEYS}", hint=_HINT)
    for key in dict.fromkeys(keys):
        metadata[key] = json_text.parse(
            str(metadata[key]).encode("utf-8", "surrogatepass"), path, f"the metadata key {key}"
        )
    return metadata


def _parse(data: memoryview, path: Path) -> dict[str, Any]:
    room = min(MAX_HEADER_BYTES, len(data) - LENGTH_BYTES)
    n_bytes = int.from_bytes(data[:LENGTH_BYTES], "little")
    looks = looks_like(bytes(data[:HEAD_BYTES]))
    is_another = not looks.startswith("the bytes") or 2 <= room < n_bytes
    if is_another and bytes(data[LENGTH_BYTES : LENGTH_BYTES + 1]) != b"{":
        hint = "name the format with -f, or download the file again"
        raise BadFileError("not a Safetensors file", path=path, offset=0, expected="a header", got=looks, hint=hint)
    if not 2 <= n_bytes <= room:
        expected = f"2 to {room} bytes" if room >= 2 else "a file of at least 10 bytes"
        got = f"{n_bytes} bytes" if room >= 2 else f"{len(data)} bytes"
        raise BadFileError("a header of wrong length", path=path, offset=0, expected=expected, got=got, hint=_HINT)
    text = bytes(data[LENGTH_BYTES : LENGTH_BYTES + n_bytes])
    fields = json_text.parse(text, path, "the header", offset=LENGTH_BYTES)
    if type(fields) is not dict:
        got = type(fields).__name__
        raise BadFileError(
            "the header is not an object", path=path, offset=LENGTH_BYTES, expected="an object", got=got, hint=_HINT
        )
    return fields


def _entry(name: str, entry: Any, start: int, path: Path) -> Entry:
    def wrong(what: str, expected: str, got: object) -> BadFileError:
        shown = got if isinstance(got, str) else short_repr(got)
        return BadFileError(what, path=path, tensor=name, expected=expected, got=shown, hint=_HINT)

    if type(entry) is not dict:
        raise wrong("an entry of the header is not an object", "dtype, shape and data_offsets", entry)
    fields: dict[str, Any] = entry
    code, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    dtype = _DTYPES.get(code) if type(code) is str else None
    if dtype is None:
        if type(code) is str and code in _OTHER_DTYPES:
            what = f"element type {code} is not supported"
            raise UnsupportedError(what, path=path, tensor=name, expected=", ".join(_DTYPES), hint="convert the tensor")
        raise wrong("unknown element type", ", ".join(_DTYPES), code)
    if shape is None or not _are_sizes(shape):
        raise wrong("a wrong shape", "a list of whole numbers, none negative", shape)
    if len(shape) > MAX_DIMS:
        raise UnsupportedError(
            "too many dimensions", path=path, tensor=name, expected=f"at most {MAX_DIMS}", got=len(shape)
        )
    if offsets is None or not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise wrong("wrong data_offsets", "two ascending whole numbers", offsets)
    begin, end = offsets
    n_bytes = prod(shape) * dtype.block_bytes
    if end - begin != n_bytes:
        raise wrong("a tensor's bytes do not fit its shape", f"{n_bytes} bytes for {code} {shape}", f"{end - begin}")
    return Entry(name, dtype, tuple(shape), start + begin, start + end)


def _are_sizes(values: Any) -> bool:
    return type(values) is list and all(type(value) is int and 0 <= value <= MAX_INT for value in values)


def _check_places(entries: list[Entry], start: int, size: int, path: Path) -> None:
    """The tensors follow each other from the start of the data to the end of the file."""
    free = start
    for entry in entries:
        if entry.end > size:
            what, expected, got = "tensor data runs past the end of the file", f"{entry.end} bytes", f"{size} bytes"
        elif entry.begin != free:
            what = "tensors overlap" if entry.begin < free else "a gap before a tensor"
            expected, got = f"offset {free - start}", f"offset {entry.begin - start}"
        else:
            free = entry.end
            continue
        raise BadFileError(what, path=path, tensor=entry.name, expected=expected, got=got, hint=_HINT)
    if free != size:
        expected = f"a file of {free} bytes"
        raise BadFileError(
            "bytes after the last tensor", path=path, offset=free, expected=expected, got=f"{size} bytes", hint=_HINT
        )
