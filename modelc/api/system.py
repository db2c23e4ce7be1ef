"""`GET /v1/system`: the machine that the model runs on."""

from __future__ import annotations

import os
import platform
import struct

import msgspec
from litestar import get
from litestar.types import ASGIApp

from modelc.api.answers import json_answer
from modelc.api.request import ApiRequest
from modelc.bundle.isas import ISAS, choose_isa
from modelc.errors import UnsupportedError


class System(msgspec.Struct, kw_only=True):
    """The machine and the model.

    `simd` is the best instruction set that there are kernels for, `threads` the size of the team, `kv` the type of keys
    and values, null where there are none.
    """

    model: str
    architecture: str
    total_params: int
    total_bytes: int
    cpu_cores: int
    os: str
    cpu_arch: str
    pointer_width: int
    memory_total_bytes: int | None
    simd: str
    threads: int
    kv: str | None
    metal_available: bool = False
    cuda_available: bool = False


@get("/v1/system", opt={"answer": System})
async def system(request: ApiRequest) -> ASGIApp:
    """Describe the machine."""
    model = request.loaded
    return json_answer(
        System(
            model=model.name,
            architecture=model.architecture,
            total_params=model.total_params,
            total_bytes=model.total_bytes,
            cpu_cores=os.cpu_count() or 1,
            os=platform.system().lower(),
            cpu_arch=platform.machine().lower(),
            pointer_width=8 * struct.calcsize("P"),
            memory_total_bytes=memory_total_bytes(),
            simd=simd(),
            threads=model.n_threads,
            kv=model.kv,
        )
    )


def memory_total_bytes() -> int | None:
    """The machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def simd() -> str:
    """Name of the best instruction set that this processor has, of those that kernels are built for."""
    try:
        return choose_isa([isa.name for isa in ISAS]).name
    except UnsupportedError:
        return "unknown"
