"""Files that a model's own file names: never outside the model's folder."""

from __future__ import annotations

import re
from pathlib import Path

from modelc.errors import BadFileError

# Separators of either kind, drive letters and NUL.
_ODD = re.compile(r"[\\:\0]")


def contained(name: str, beside: Path, *, folders: bool, tensor: str | None = None) -> Path:
    """The path of a file that the content of another one names.

    A download cache keeps files under their checksums in one folder and links to them: a link is followed when it
    leads into the model's folder, or to where the naming file itself is linked to.

    Args:
        name: As found in the file.
        beside: The file it was found in.
        folders: Whether `name` may lead into folders below.
        tensor: The tensor concerned, for messages.

    Returns:
        The path; whether anything is there is not checked.

    Raises:
        BadFileError: The name, or the link that has it, leads out of the model's folder.
    """
    parts = name.split("/")
    proper = not _ODD.search(name) and not {"", ".", ".."} & set(parts) and (folders or len(parts) == 1)
    path = beside.parent / name if proper else beside
    try:
        real = path.resolve()
        homes = (beside.parent.resolve(), beside.resolve().parent)
        proper = proper and any(real.is_relative_to(home) for home in homes)
    except (OSError, RuntimeError, ValueError):
        proper = False
    if not proper:
        expected = f"a file in {beside.parent}"
        hint = "get the model from somebody you trust"
        raise BadFileError(
            "a file outside the model's folder is named",
            path=beside,
            tensor=tensor,
            expected=expected,
            got=name,
            hint=hint,
        )
    return path
