"""PyTorch checkpoints for tests, operation by operation, right and wrong."""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any


def value(plain: Any) -> bytes:
    """The operations that push a plain value."""
    return pickle.dumps(plain, 2)[2:-1]


def name(module: str, leaf: str) -> bytes:
    return f"c{module}\n{leaf}\n".encode()


def storage(key: str = "0", kind: bytes = name("torch", "FloatStorage"), n_elements: int = 4) -> bytes:
    return b"(" + value("storage") + kind + value(key) + value("cpu") + value(n_elements) + b"tQ"


def tensor(
    shape: Any = (4,),
    strides: Any = (1,),
    offset: Any = 0,
    store: bytes | None = None,
    rebuild: str = "_rebuild_tensor_v2",
) -> bytes:
    hooks = name("collections", "OrderedDict") + b")R"
    head = name("torch._utils", rebuild) + b"(" + (storage() if store is None else store)
    return head + value(offset) + value(shape) + value(strides) + b"\x89" + hooks + b"tR"


def state_dict(**tensors: bytes) -> bytes:
    """A whole pickle: an ordered dictionary of what these operations push."""
    items = b"".join(value(key) + operations for key, operations in tensors.items())
    return b"\x80\x02" + name("collections", "OrderedDict") + b")R(" + items + b"u."


def archive(
    pickle_bytes: bytes, storages: dict[str, bytes] | None = None, method: int = zipfile.ZIP_STORED, **more: bytes
) -> bytes:
    """An archive as `torch.save` writes it; `more` are further members."""
    members = {"data.pkl": pickle_bytes, "byteorder": b"little", "version": b"3\n"} | more
    members |= {f"data/{key}": content for key, content in (storages or {"0": bytes(range(16))}).items()}
    return zip_of({f"archive/{key}": content for key, content in members.items()}, method)


def zip_of(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for key, content in members.items():
            file.writestr(zipfile.ZipInfo(key), content, method)
    return buffer.getvalue()
