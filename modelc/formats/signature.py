"""What the first bytes of a file say about it, for detection and for error messages."""

from __future__ import annotations

GGUF_MAGIC = b"GGUF"
MODELC_MAGIC = b"MODELC\x1a\n"
ZIP_MAGIC = b"PK\x03\x04"

HEAD_BYTES = 512
TEXT_BYTES = 32  # enough to tell text from other bytes

# In this order: the first that matches wins.
_LOOKS: tuple[tuple[bytes, str], ...] = (
    (MODELC_MAGIC, "a .modelc file"),
    (GGUF_MAGIC[::-1], "a big-endian GGUF file"),
    (GGUF_MAGIC, "a GGUF file"),
    (ZIP_MAGIC, "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x80\x02", "a Python pickle"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file it stands for"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "an XML page"),
    (b"{", "JSON text"),
)


def looks_like(head: bytes) -> str:
    """A guess, in words, at what a file is that begins with `head`.

    Args:
        head: The first bytes; `HEAD_BYTES` of them are enough.

    Returns:
        A phrase such as `an HTML page` or `the bytes 01 02 03 04`.
    """
    trimmed = head.lstrip().lower()
    for magic, phrase in _LOOKS:
        if head.startswith(magic) or (magic.isascii() and trimmed.startswith(magic)):
            return phrase
    if not head.strip(b"\0"):
        return "zero bytes (an unfinished download?)"
    first = head[:TEXT_BYTES]
    if first.isascii() and b"".join(first.split()).decode("ascii").isprintable():
        return "text"  # and not which: servers answer with this
    return f"the bytes {head[:8].hex(' ')}"
