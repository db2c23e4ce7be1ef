"""`modelc run`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli import garbage, late_front
from modelc.cli.loading import load_adapters, parse_adapter
from modelc.cli.loading import load_model as load_with_progress
from modelc.cli.options import ActivationsOption, KvOption, ModelOption, StoreOption, open_store, parse_size
from modelc.cli.sampling_options import NOTHING_SAID, SamplingOptions
from modelc.cli.server_options import NO_LIMITS, ServerOptions
from modelc.errors import BadInputError, NotFoundError
from modelc.kernels.source import KernelSource
from modelc.resolve import find_model
from modelc.settings import Settings, load_settings
from modelc.store import SUFFIX, Store

if TYPE_CHECKING:
    from modelc.runtime import LoadedModel

EXAMPLES = """Examples:
  modelc run smollm2
  modelc run smollm2:2 --port 9000 --threads 4
  modelc run ./SmolLM2-135M-Instruct.Q4_1.gguf --listen [::1]:8080
  MODELC_API_KEY=secret modelc run --bind 0.0.0.0
  modelc run smollm2 --max-context 2048 --kv-memory 1GiB --gamma 8
  modelc run smollm2 --lora ./pirate.safetensors:0.8 --adapters ./adapters
  modelc run smollm2 --bind 0.0.0.0 --api-key @keys.txt --rate-limit 60 --access-log json

Ask it:
  curl http://127.0.0.1:8080/v1/chat/completions \\
    -H 'Content-Type: application/json' \\
    -d '{"messages": [{"role": "user", "content": "Hello!"}]}'"""
AT_LEAST_ONE = Number(gte=1)

KernelsOfIsa: TypeAlias = Callable[[str | None], KernelSource | None]  # where kernels come from, if not as usual


def run(
    model: Annotated[
        ModelOption | None,
        Parameter(
            help="A name in the store (NAME or NAME:VERSION), a .modelc, or a weights file. "
            "Without it: the default model, or the store's only one."
        ),
    ] = None,
    /,
    *,
    bind: Annotated[str | None, Parameter(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, Parameter(help="TCP port, 0 for any free one. [default: 8080]", validator=Number(gte=0, lte=65535))
    ] = None,
    listen: Annotated[str | None, Parameter(help="ADDR:PORT, wins over --bind and --port.")] = None,
    threads: Annotated[
        int | None, Parameter(help="Compute threads. [default: the free physical cores]", validator=AT_LEAST_ONE)
    ] = None,
    profile: Annotated[
        bool, Parameter(negative="", show_default=False, help="Show at the end where the time went.")
    ] = False,
    limits: ServerOptions = NO_LIMITS,
    max_context: Annotated[
        int | None,
        Parameter(
            help="Most tokens of context. A full context then loses its oldest tokens and the answer goes on; "
            "without it, the answer ends at the context the model was trained for.",
            validator=Number(gte=2),
        ),
    ] = None,
    anchor_tokens: Annotated[
        int,
        Parameter(help="With --max-context: so many tokens at the front are never dropped.", validator=Number(gte=0)),
    ] = 0,
    kv: KvOption = None,
    kv_hot_window: Annotated[
        int,
        Parameter(help="With --kv mixed: so many newest tokens are read in f32.", validator=Number(gte=0)),
    ] = 64,
    kv_memory: Annotated[
        str | None,
        Parameter(help="Memory for the K/V cache, like 2GiB or 500MB. [default: at most a quarter of all memory]"),
    ] = None,
    gamma: Annotated[
        int,
        Parameter(
            help="Tokens that speculation proposes for one pass, 0 to 32; answers stay the same. [default: 0, off]",
            validator=Number(gte=0, lte=32),
            show_default=False,
        ),
    ] = 0,
    activations: ActivationsOption = "int8",
    lora: Annotated[
        list[str] | None,
        Parameter(
            help="FILE[:ALPHA]: a LoRA adapter (Safetensors, GGUF or a folder of PEFT), and a factor to its scale; "
            "repeatable: they add up.",
            negative="",
        ),
    ] = None,
    sampling: SamplingOptions = NOTHING_SAID,
    aot: Annotated[
        bool,
        Parameter(
            negative="",
            help="Compute with kernels from a library that is built once: this process starts without a compiler.",
        ),
    ] = False,
    isa: Annotated[
        str | None,
        Parameter(
            help="With kernels built ahead of time: the instruction set, like avx2, instead of the best there is. "
            "Answers stay the same."
        ),
    ] = None,
    kernels: Annotated[KernelsOfIsa | None, Parameter(parse=False)] = None,
    store: StoreOption = None,
) -> int:
    """Serve a model over HTTP until it is told to stop (Ctrl-C)."""
    settings = load_settings()
    found = open_store(store, settings)
    path = find_model(model, found) if model is not None else _default_model(found, settings)
    if path.suffix == SUFFIX:  # packing another file makes much that is large
        garbage.begin()
    collections = garbage.collections()
    kv_bytes = None if kv_memory is None else parse_size(kv_memory, "--kv-memory")
    adapters = [parse_adapter(each) for each in lora or ()]
    source = _kernel_source(aot, isa) if kernels is None else kernels(isa)
    for package, homes in late_front.SERVING.items():
        late_front.run_late(package, homes)
    from modelc.api.address import parse_listen
    from modelc.api.server import serve

    host, tcp_port = (bind or settings.bind, settings.port if port is None else port)
    if listen is not None:
        host, tcp_port = parse_listen(listen)
    options = limits.serve_options(host, tcp_port, settings.api_key, sampling.given())

    profiled: list[LoadedModel] = []

    def load_model() -> LoadedModel:
        served = load_with_progress(
            path,
            threads=threads or settings.threads,
            activations=activations,
            kv=kv,
            kv_hot_window=kv_hot_window,
            max_context=max_context,
            anchor_tokens=anchor_tokens,
            kv_memory=kv_bytes,
            gamma=gamma,
            kernels=source,
        )
        if adapters:
            print(f"modelc: {load_adapters(served, adapters).message}", file=sys.stderr)
        if profile:
            served.start_profile()
            profiled.append(served)
        garbage.settle(collections)
        return served

    code = serve(load_model, options)
    for served in profiled:
        print(served.profile_report(), file=sys.stderr)
    return code


def _kernel_source(aot: bool, isa: str | None) -> KernelSource | None:
    if aot:
        from modelc.bundle.ahead import AheadOfTime

        return AheadOfTime(isa)
    if isa is not None:
        raise BadInputError("only kernels built ahead of time have one", param="--isa", hint="add --aot")
    return None


def _default_model(store: Store, settings: Settings) -> Path:
    """Return the configured model, or the only one in the store."""
    if settings.default_model:
        return find_model(settings.default_model, store)
    names = [model.name for model in store.models()]
    if not names:
        raise NotFoundError(
            "the store has no model", path=store.folder, hint="name a file, or get one with `modelc pull`"
        )
    if len(names) > 1:
        listed = ", ".join(names)
        raise BadInputError(
            "which model?", param="MODEL", expected=f"one of {listed}", hint="set default_model to choose"
        )
    return store.find(names[0])
