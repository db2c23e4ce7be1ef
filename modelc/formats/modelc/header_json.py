"""The JSON header of a `.modelc` file, to text and back with every field checked.

Strings with invalid UTF-8 carry lone surrogates, written as JSON escapes. A number may be NaN, Infinity or -Infinity.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

from modelc.dtypes import DTYPES
from modelc.errors import UnsupportedError
from modelc.formats.modelc.header import (
    COMPRESSIONS,
    TENSOR_ALIGNMENT,
    Entry,
    Header,
    align,
    damaged,
    layout_of,
    stored_bytes,
)
from modelc.ir import JSON, MAX_DIMS, MAX_INT, MAX_NAME_CHARS
from modelc.layout import LAYOUT_VERSION

MAX_TENSORS = 1 << 18
# Decoding makes Python objects of 8 to 230 bytes each, so that their number is bounded before it begins.
MAX_VALUES = 1 << 23

CHAT_TEMPLATE = "tokenizer.chat_template"
TOKENIZER_PREFIX = "tokenizer"

_CHECKSUM = re.compile(r"[0-9a-f]{64}")


def encode(header: Header) -> bytes:
    """The JSON header as bytes; the same header gives the same bytes."""
    rest = dict(header.metadata)
    chat_template = rest.pop(CHAT_TEMPLATE) if isinstance(rest.get(CHAT_TEMPLATE), str) else None
    fields = {
        "name": header.name,
        "architecture": header.architecture,
        "format_version": header.format_version,
        "layout_version": LAYOUT_VERSION,
        "compression": header.compression,
        "source_format": header.source_format,
        "hyperparameters": {key: value for key, value in rest.items() if not key.startswith(TOKENIZER_PREFIX)},
        "tokenizer": {key: value for key, value in rest.items() if key.startswith(TOKENIZER_PREFIX)},
        "chat_template": chat_template,
        "tensors": [_encode_entry(entry) for entry in header.entries],
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    # Lone surrogates alone cannot be encoded, and Python's escape for them is JSON's.
    return text.encode("utf-8", "backslashreplace")


def decode(text: bytes, format_version: int, path: Path) -> Header:
    """The inverse of `encode`.

    Args:
        text: The JSON header.
        format_version: As the file's prefix has it.
        path: The file, for messages.

    Returns:
        The header; its entries follow each other without overlap and have the sizes that their shapes need.

    Raises:
        BadFileError: A field is missing, of a wrong type, or contradicts another.
        UnsupportedError: A layout version that this modelc does not know.
    """
    if count_values(text) > MAX_VALUES:
        raise damaged("the header has too many values", path, f"at most {MAX_VALUES}", count_values(text))
    try:
        fields = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged("the header is not JSON", path, "JSON", f"{type(error).__name__} {error}") from None
    if not isinstance(fields, dict):
        raise damaged("the header is not a JSON object", path, "an object", type(fields).__name__)
    if fields.get("layout_version") != LAYOUT_VERSION:
        hint = "look for a newer modelc, or pack the model again"
        got = short_repr(fields.get("layout_version"))
        raise UnsupportedError("layout version not supported", path=path, expected=LAYOUT_VERSION, got=got, hint=hint)
    for key, right in (("format_version", format_version), ("compression", COMPRESSIONS[format_version])):
        if fields.get(key) != right:
            raise damaged(f"header field {key} is wrong", path, repr(right), short_repr(fields.get(key)))
    metadata: dict[str, JSON] = {
        **_field(fields, "hyperparameters", dict, path),
        **_field(fields, "tokenizer", dict, path),
    }
    if fields.get("chat_template") is not None:
        metadata[CHAT_TEMPLATE] = _field(fields, "chat_template", str, path)
    names = [_field(fields, key, str, path) for key in ("name", "architecture", "source_format")]
    rows = _field(fields, "tensors", list, path)
    if len(rows) > MAX_TENSORS:
        raise damaged("the header has too many tensors", path, f"at most {MAX_TENSORS}", len(rows))
    return Header(names[0], names[1], names[2], format_version, metadata, _decode_table(rows, format_version, path))


def count_values(text: bytes) -> int:
    """A bound on the number of values in JSON text: each but the first stands behind one of these characters."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _field(fields: dict[str, Any], key: str, kind: type, path: Path, tensor: str | None = None) -> Any:
    value: Any = fields.get(key)
    right = type(value) is kind
    if right and kind is str:
        right = 0 < len(value) <= MAX_NAME_CHARS or key == "chat_template"
    elif right and kind is int:
        right = 0 <= value <= MAX_INT
    if not right:
        what = f"header field {key} is missing or wrong"
        raise damaged(what, path, f"a JSON {kind.__name__}", short_repr(value), tensor=tensor)
    return value


def _encode_entry(entry: Entry) -> dict[str, JSON]:
    row: dict[str, JSON] = {
        "name": entry.name,
        "dtype": entry.dtype.name,
        "shape": list(entry.shape),
        "layout": entry.layout,
        "offset": entry.offset,
        "length": entry.length,
        "checksum": entry.checksum,
    }
    if entry.packed_checksum is not None:
        row["packed_checksum"] = entry.packed_checksum
    return row


def _decode_table(rows: list[Any], format_version: int, path: Path) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    end = 0
    for number, row in enumerate(rows):
        if type(row) is not dict:
            got = f"{short_repr(row)} in row {number}"
            raise damaged("a row of the tensor table is not an object", path, "an object", got)
        entry = _decode_entry(row, COMPRESSIONS[format_version] != "none", path)
        if entries and entry.name <= entries[-1].name:
            raise damaged(
                "tensors are not sorted by name", path, "ascending names", entries[-1].name, tensor=entry.name
            )
        if entry.offset != align(end, TENSOR_ALIGNMENT):
            expected = align(end, TENSOR_ALIGNMENT)
            raise damaged("a tensor is at a wrong offset", path, expected, entry.offset, tensor=entry.name)
        end = entry.offset + entry.length
        entries.append(entry)
    return tuple(entries)


def _decode_entry(row: dict[str, Any], compressed: bool, path: Path) -> Entry:
    name = _field(row, "name", str, path)

    def field(key: str, kind: type) -> Any:
        return _field(row, key, kind, path, name)

    def wrong(what: str, expected: object, got: object) -> Exception:
        return damaged(what, path, expected, got, tensor=name)

    dtype = DTYPES.get(field("dtype", str))
    if dtype is None:
        raise wrong("unknown tensor type", ", ".join(DTYPES), row["dtype"])
    shape = tuple(field("shape", list))
    if len(shape) > MAX_DIMS or any(type(dim) is not int or not 0 <= dim <= MAX_INT for dim in shape):
        raise wrong("a wrong shape", f"at most {MAX_DIMS} whole numbers, none negative", short_repr(shape))
    if (shape[-1] if shape else 1) % dtype.block_cols:
        raise wrong("a wrong shape", f"rows of a multiple of {dtype.block_cols} for {dtype.name}", list(shape))
    if field("layout", str) != layout_of(dtype, shape):
        raise wrong("a wrong layout", layout_of(dtype, shape), row["layout"])
    length = field("length", int)
    if not (length > 0 if compressed else length == stored_bytes(dtype, shape)):
        raise wrong("a wrong length", f"{stored_bytes(dtype, shape)} bytes", length)
    keys = ["checksum", "packed_checksum"] if compressed else ["checksum"]
    for key in keys:
        if not _CHECKSUM.fullmatch(field(key, str)):
            raise wrong(f"header field {key} is wrong", "64 hexadecimal digits", row[key])
    packed_checksum = row["packed_checksum"] if compressed else None
    return Entry(name, dtype, shape, row["layout"], field("offset", int), length, row["checksum"], packed_checksum)
