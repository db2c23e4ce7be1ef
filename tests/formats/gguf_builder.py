"""Writes GGUF files byte by byte, well-formed or not; knows nothing of the reader under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import pack

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SCALAR_CODES = {
    U8: "B",
    I8: "b",
    U16: "H",
    I16: "h",
    U32: "I",
    I32: "i",
    F32: "f",
    BOOL: "?",
    U64: "Q",
    I64: "q",
    F64: "d",
}
GGML_F32, GGML_F16, GGML_Q4_0, GGML_Q8_0 = 0, 1, 2, 8


def string(text: str | bytes, length: int | None = None) -> bytes:
    """A string; `length` overrides the number of bytes it claims to have."""
    content = text.encode() if isinstance(text, str) else text
    return pack("<Q", len(content) if length is None else length) + content


def scalar(kind: int, value: float) -> bytes:
    return pack("<" + SCALAR_CODES[kind], value)


def array(kind: int, items: list[bytes], count: int | None = None) -> bytes:
    """An array of encoded items; `count` overrides the number it claims to have."""
    return pack("<IQ", kind, len(items) if count is None else count) + b"".join(items)


@dataclass
class Gguf:
    """A file under construction; every field may be set to something wrong."""

    version: int = 3
    magic: bytes = b"GGUF"
    alignment: int = 32
    n_tensors: int | None = None
    n_keys: int | None = None
    keys: list[bytes] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    data: bytes = b""
    tail: bytes = b""

    def key(self, name: str | bytes, kind: int, encoded: bytes) -> Gguf:
        self.keys.append(string(name) + pack("<I", kind) + encoded)
        return self

    def text(self, name: str, value: str | bytes) -> Gguf:
        return self.key(name, STRING, string(value))

    def u32(self, name: str, value: int) -> Gguf:
        return self.key(name, U32, scalar(U32, value))

    def strings(self, name: str, values: list[str | bytes]) -> Gguf:
        return self.key(name, ARRAY, array(STRING, [string(value) for value in values]))

    def row(self, name: str | bytes, dims: list[int], ggml_type: int, offset: int) -> Gguf:
        """A row of the tensor table, dimensions innermost first, as the file has them."""
        self.rows.append(string(name) + pack(f"<I{len(dims)}Q", len(dims), *dims) + pack("<IQ", ggml_type, offset))
        return self

    def tensor(self, name: str, dims: list[int], ggml_type: int, content: bytes) -> Gguf:
        """A row with the next aligned offset, and its data."""
        self.data += bytes(-len(self.data) % self.alignment)
        self.row(name, dims, ggml_type, len(self.data))
        self.data += content
        return self

    def build(self) -> bytes:
        n_tensors = len(self.rows) if self.n_tensors is None else self.n_tensors
        n_keys = len(self.keys) if self.n_keys is None else self.n_keys
        head = self.magic + pack("<IQQ", self.version, n_tensors, n_keys) + b"".join(self.keys) + b"".join(self.rows)
        return head + bytes(-len(head) % self.alignment) + self.data + self.tail


def small_gguf() -> Gguf:
    """A valid file with one of everything that matters: all metadata types, three tensor types, odd strings."""
    file = Gguf().text("general.architecture", "llama").text("general.name", "Tiny")
    for kind, value in ((U8, 200), (I8, -3), (U16, 60000), (I16, -300), (U32, 1 << 31), (I32, -70000)):
        file.key(f"number.{kind}", kind, scalar(kind, value))
    file.key("number.f32", F32, scalar(F32, 1e-5)).key("number.f64", F64, scalar(F64, 0.1))
    file.key("number.u64", U64, scalar(U64, (1 << 64) - 1)).key("number.i64", I64, scalar(I64, -(1 << 63)))
    file.key("number.bool", BOOL, scalar(BOOL, True))
    file.strings("tokenizer.ggml.tokens", ["a", "Ġb", "", "日本", b"\xff\xfe", b"\x00"])
    file.key("tokenizer.ggml.scores", ARRAY, array(F32, [scalar(F32, value) for value in (0.5, -1.0, 2.25)]))
    file.key("tokenizer.flags", ARRAY, array(BOOL, [b"\0", b"\1"]))
    nested = array(ARRAY, [array(I32, [scalar(I32, 1), scalar(I32, -2)]), array(STRING, [string("x")]), array(U8, [])])
    file.key("nested", ARRAY, nested)
    file.text("tokenizer.chat_template", "{{ messages }}")
    file.tensor("output_norm.weight", [8], GGML_F32, bytes(range(32)))
    file.tensor("blk.0.attn_q.weight", [32, 2], GGML_Q8_0, bytes(range(68)))
    file.tensor("blk.0.bias", [3], GGML_F16, b"\x00\x3c\x00\x40\x00\xc1")
    return file
