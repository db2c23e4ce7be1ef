"""Files in the cache folder that prove to be whole: their content, then its BLAKE2b-256."""

from __future__ import annotations

import contextlib
import tempfile
from hashlib import blake2b
from pathlib import Path

DIGEST_BYTES = 32


def kept(path: Path) -> bytes | None:
    """What `keep` wrote; None where there is nothing, or not what was written."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[:-DIGEST_BYTES]
    return content if _digest(content) == data[-DIGEST_BYTES:] else None


def keep(path: Path, content: bytes) -> bool:
    """Write a file, whole or not at all; False where the system refuses."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".modelc-", suffix=".tmp", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(content + _digest(content))
                file.close()
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        return True
    return False


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()
