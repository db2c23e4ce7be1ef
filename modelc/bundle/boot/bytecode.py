"""Python sources to bytecode, the same bytes every time; also a program.

    PYTHONHASHSEED=0 pythonX.Y -S bytecode.py < sources.zip > modules.zip

Both are zip archives without compression. A `.pyc` is marked as never to be compared with a source (PEP 552).
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import sys
import zipfile

UNCHECKED_HASH = (1).to_bytes(4, "little")


def compiled(sources: bytes) -> bytes:
    """A zip archive with every `.py` of another one as `.pyc`, and all else as it is.

    Raises:
        SyntaxError: a source is not for this Python.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sources)) as source, zipfile.ZipFile(made, "w") as target:
        for name in sorted(source.namelist()):
            content = source.read(name)
            is_module = name.endswith(".py")
            if is_module:
                code = compile(content, name, "exec", dont_inherit=True)
                digest = importlib.util.source_hash(content)
                content = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + digest + marshal.dumps(code)
            add(target, name + "c" if is_module else name, content, zipfile.ZIP_STORED)
    return made.getvalue()


def add(archive: zipfile.ZipFile, name: str, content: bytes, method: int) -> None:
    """Add a file that says nothing of when and where it was made."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.create_system = 3
    entry.external_attr = 0o644 << 16
    entry.compress_type = method
    archive.writestr(entry, content, compresslevel=6)


if __name__ == "__main__":
    sys.stdout.buffer.write(compiled(sys.stdin.buffer.read()))
