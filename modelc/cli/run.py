"""`modelc run`."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.options import StoreOption, open_store, parse_size
from modelc.cli.progress import ProgressBar
from modelc.errors import BadInputError, NotFoundError
from modelc.resolve import as_modelc, find_model
from modelc.settings import Settings, load_settings
from modelc.store import Store

if TYPE_CHECKING:
    from modelc.runtime import LanguageModel

EXAMPLES = """Examples:
  modelc run smollm2
  modelc run smollm2:2 --port 9000 --threads 4
  modelc run ./SmolLM2-135M-Instruct.Q4_1.gguf --listen [::1]:8080
  MODELC_API_KEY=secret modelc run --bind 0.0.0.0
  modelc run smollm2 --max-context 2048 --kv-memory 1GiB --gamma 8

Ask it:
  curl http://127.0.0.1:8080/v1/chat/completions \\
    -H 'Content-Type: application/json' \\
    -d '{"messages": [{"role": "user", "content": "Hello!"}]}'"""
AT_LEAST_ONE = Number(gte=1)


@Parameter(name="*", group="Sampling defaults")
@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """Values for requests that leave these fields out; None keeps the built-in one."""

    max_tokens: Annotated[int | None, Parameter(help="Most tokens to generate. [default: 128]")] = None
    temperature: Annotated[float | None, Parameter(help="0 takes the likeliest token. [default: 0]")] = None
    top_k: Annotated[int | None, Parameter(help="Only the K likeliest tokens. [default: 0, off]")] = None
    top_p: Annotated[
        float | None, Parameter(help="The fewest tokens whose probabilities exceed P. [default: 0, off]")
    ] = None
    min_p: Annotated[
        float | None, Parameter(help="Only tokens of at least P times the likeliest one's. [default: 0, off]")
    ] = None
    repetition_penalty: Annotated[
        float | None, Parameter(help="Divides what prompt and answer contain. [default: 1, off]")
    ] = None
    presence_penalty: Annotated[
        float | None, Parameter(help="Taken once from tokens in the answer. [default: 0, off]")
    ] = None
    frequency_penalty: Annotated[
        float | None, Parameter(help="Taken for each time a token is in the answer. [default: 0, off]")
    ] = None
    seed: Annotated[int | None, Parameter(help="Draw the same tokens every time. [default: a fresh one]")] = None


def run(
    model: Annotated[
        str | None,
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
    profile: Annotated[bool, Parameter(negative="", help="Show at the end where the time went.")] = False,
    api_key: Annotated[
        str | None, Parameter(help="Key that clients must send; MODELC_API_KEY keeps it out of the process list.")
    ] = None,
    rate_limit: Annotated[
        int | None, Parameter(help="Most requests per minute from one address.", validator=AT_LEAST_ONE)
    ] = None,
    max_concurrent: Annotated[
        int | None, Parameter(help="Most requests answered at a time.", validator=AT_LEAST_ONE)
    ] = None,
    cors: Annotated[
        list[str] | None,
        Parameter(
            help="Origin whose pages may call the server, like https://chat.example; repeatable. "
            "none: no other pages. [default: *, all]",
            negative="",
        ),
    ] = None,
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
    kv: Annotated[
        Literal["f16", "f32", "int8", "mixed"] | None,
        Parameter(help="Type of the K/V cache; mixed: the newest in f32, older ones in int8. [default: f16]"),
    ] = None,
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
    activations: Annotated[
        Literal["int8", "int16"], Parameter(help="Precision beside quantized weights: int16 is exacter, slower.")
    ] = "int8",
    sampling: SamplingDefaults = SamplingDefaults(),
    store: StoreOption = None,
) -> int:
    """Serve a model over HTTP until it is told to stop (Ctrl-C)."""
    settings = load_settings()
    found = open_store(store, settings)
    path = find_model(model, found) if model is not None else _default_model(found, settings)
    if api_key == "":
        raise BadInputError("the API key is empty", param="--api-key", hint="leave it out to ask clients for none")
    kv_bytes = None if kv_memory is None else parse_size(kv_memory, "--kv-memory")
    from modelc.api.address import parse_listen
    from modelc.api.options import ServeOptions
    from modelc.api.server import serve

    host, tcp_port = (bind or settings.bind, settings.port if port is None else port)
    if listen is not None:
        host, tcp_port = parse_listen(listen)
    options = ServeOptions(
        bind=host,
        port=tcp_port,
        api_key=api_key or settings.api_key,
        rate_limit=rate_limit,
        max_concurrent=max_concurrent,
        cors_origins=_cors_origins(cors),
        defaults={name: value for name, value in asdict(sampling).items() if value is not None},
    )

    profiled: list[LanguageModel] = []

    def load_model() -> LanguageModel:
        from modelc import runtime

        with ProgressBar() as bar:
            packed = as_modelc(path, bar)
        with ProgressBar(str) as bar:
            served = runtime.load(
                packed,
                threads=threads or settings.threads,
                activations=activations,
                kv=kv,
                kv_hot_window=kv_hot_window,
                max_context=max_context,
                anchor_tokens=anchor_tokens,
                kv_memory=kv_bytes,
                gamma=gamma,
                progress=lambda done, total, _: bar(done, total, "compiling kernels, once for this machine"),
            )
        if profile:
            served.start_profile()
            profiled.append(served)
        return served

    code = serve(load_model, options)
    for served in profiled:
        print(served.profile_report(), file=sys.stderr)
    return code


def _cors_origins(given: list[str] | None) -> tuple[str, ...]:
    if not given:
        return ("*",)
    if "none" in given and len(given) > 1:
        raise BadInputError("none stands alone", param="--cors", got=" ".join(given), expected="none, or origins")
    return () if given == ["none"] else tuple(given)


def _default_model(store: Store, settings: Settings) -> Path:
    """Return the configured model, or the only one in the store."""
    if settings.default_model:
        return find_model(settings.default_model, store)
    names = [model.name for model in store.models()]
    if not names:
        raise NotFoundError(
            "the store has no model", path=store.folder, hint="name a file, or add one with `modelc pack`"
        )
    if len(names) > 1:
        listed = ", ".join(names)
        raise BadInputError(
            "which model?", param="MODEL", expected=f"one of {listed}", hint="set default_model to choose"
        )
    return store.find(names[0])
