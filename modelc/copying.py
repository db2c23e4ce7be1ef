"""Copies of models: inside the store, into it, and out of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from modelc.errors import BadInputError, StoreError
from modelc.resolve import find_model
from modelc.store import SUFFIX, Store

COPY_BYTES = 1 << 24


def copy_model(source: str, target: str, store: Store, progress: Callable[[int, int, str], None] | None = None) -> Path:
    """Copy a model and return the new file; nothing is overwritten.

    A copy from the store to the store is another name of the same bytes, where the file system has such names.

    Args:
        source: a name in the store, or a `.modelc` file.
        target: a new name for the store, or a path: with a folder in it, or ending in `.modelc`.
        store: the store.
        progress: called with done bytes, total bytes and a label.

    Raises:
        NotFoundError: no such source.
        BadFileError: the source is no `.modelc` file, or a damaged one.
        BadInputError: the target is no name for a model, or no place for a file.
        StoreError: there is something of the target's name.
        WriteError: the copy cannot be written.
    """
    from modelc.formats import modelc

    path = find_model(source, store)
    modelc.read_header(path)
    inside = path.parent == store.folder
    as_path = Path(target).expanduser()
    if len(as_path.parts) > 1 or as_path.suffix == SUFFIX:
        return _copy_to(path, as_path, progress)
    return store.add(target, lambda part: _link(path, part) if inside else copy_file(path, part, progress), new=True)


def _copy_to(path: Path, target: Path, progress: Callable[[int, int, str], None] | None) -> Path:
    if target.is_dir():
        raise BadInputError("the target is a folder", param="target", got=target, hint="name a file in it")
    if target.exists():
        raise StoreError("this file exists", path=target, hint="choose another name, or delete it first")
    copy_file(path, target, progress)
    return target


def _link(path: Path, part: Path) -> None:
    try:
        os.link(path, part)
    except OSError:  # no hard links here
        copy_file(path, part, None)


def copy_file(path: Path, target: Path, progress: Callable[[int, int, str], None] | None) -> None:
    """Copy the bytes of `path` to `target`, which is whole and on the disk afterwards, or does not change.

    Args:
        path: what to copy.
        target: the file to create or replace.
        progress: called with done bytes, total bytes and a label.

    Raises:
        WriteError: the copy cannot be written.
    """
    from modelc.formats.atomic import atomic_write

    total, done = path.stat().st_size, 0
    with path.open("rb") as source, atomic_write(target) as copy:
        while chunk := source.read(COPY_BYTES):
            copy.write(chunk)
            done += len(chunk)
            if progress:
                progress(done, total, "copying")
