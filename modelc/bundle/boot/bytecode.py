"""Python sources to bytecode, the same bytes every time; also a program.

    PYTHONHASHSEED=0 pythonX.Y -S bytecode.py < sources.zip > modules.zip

Both are zip archives without compression. A `.pyc` is marked as never to be compared with a source (PEP 552). The
first member of the second is an index, so that nobody has to read the directory of the archive.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import zipfile

UNCHECKED_HASH = (1).to_bytes(4, "little")
INDEX = "index"  # of each other member: its first byte, counted from the end of the index, and its size
MEMBER_HEADER_BYTES = 30  # without the name, which follows; source: APPNOTE.TXT 6.3.10, 4.3.7


def compiled(sources: bytes) -> bytes:
    """A zip archive with every `.py` of another one as `.pyc`, all else as it is, and an index of them.

    Raises:
        SyntaxError: a source is not for this Python.
    """
    import importlib.util  # here: a start that finds everything unpacked does without these
    import io
    import zipfile

    members: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(sources)) as source:
        for name in sorted(source.namelist()):
            content = source.read(name)
            is_module = name.endswith(".py")
            if is_module:
                code = compile(content, name, "exec", dont_inherit=True)
                digest = importlib.util.source_hash(content)
                content = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + digest + marshal.dumps(code)
            members[name + "c" if is_module else name] = content
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as target:
        add(target, INDEX, _index(members), zipfile.ZIP_STORED)
        for name, content in members.items():
            add(target, name, content, zipfile.ZIP_STORED)
    return made.getvalue()


def add(archive: zipfile.ZipFile, name: str, content: bytes, method: int) -> None:
    """Add a file that says nothing of when and where it was made."""
    import zipfile

    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.create_system = 3
    entry.external_attr = 0o644 << 16
    entry.compress_type = method
    archive.writestr(entry, content, compresslevel=6)


def _index(members: Mapping[str, bytes]) -> bytes:
    places = {}
    at = 0
    for name, content in members.items():
        at += MEMBER_HEADER_BYTES + len(name.encode())
        places[name] = (at, len(content))
        at += len(content)
    return marshal.dumps(places, 2)  # later versions write what depends on counts of references


if __name__ == "__main__":
    sys.stdout.buffer.write(compiled(sys.stdin.buffer.read()))
