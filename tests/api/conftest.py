"""A model that answers without computing, and clients of servers that serve it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.address import bind_listener, url_of
from modelc.api.app import create_app
from modelc.api.http_loop import run_until
from modelc.api.options import ServeOptions
from modelc.api.state import ServerState
from modelc.errors import BadFileError, BadInputError, ModelcError, NotFoundError
from modelc.runtime import Chunk, Sampling, TokenLogprob
from modelc.runtime.adapters import AdapterReport
from modelc.runtime.scheduler import Counters

BOS_ID = 256
FRESH_SEED = 4242


class FakeGeneration:
    """What `submit` returns; `produced` counts the tokens that were made."""

    def __init__(self, n_prompt: int, seed: int, sampling: Sampling) -> None:
        self.prompt_tokens = n_prompt
        self.cached_tokens = 1
        self.completion_tokens = 0
        self.seed = seed
        self.sampling = sampling
        self.finish_reason: str | None = None
        self.stop_string: str | None = None
        self.error: ModelcError | None = None
        self.cancelled = threading.Event()
        self.submitted_s = time.perf_counter()
        self.started_s: float | None = None

    def cancel(self) -> None:
        self.cancelled.set()


@dataclass
class FakeModel:
    """Says its pieces, one token each; tokens of texts are their bytes, and 256 is BOS (`<s>`)."""

    pieces: Sequence[str] = ("The", " capital", "", " is Pärïs", ".")  # "" as while a character is incomplete
    delay_s: float = 0.0
    prefill_s: float = 0.0
    fail_after: int | None = None
    fail_seed: int | None = None  # the only one that fails
    pieces_of_seed: dict[int, Sequence[str]] = field(default_factory=dict)  # instead of `pieces`
    logprobs_of_seed: dict[int, float] = field(default_factory=dict)  # of each token
    template_variables: list[dict[str, Any]] = field(default_factory=list)  # with the tools, of each conversation
    name: str = "fake/model"
    n_ctx: int = 300
    architecture: str = "llama"
    chat_template: str | None = "{{ messages }}"
    vocab_size: int = 257
    total_params: int = 10
    total_bytes: int = 20
    n_threads: int = 1
    gamma: int = 3
    kv: str | None = "f16"
    fallback: str | None = None
    counters: Counters = field(default_factory=Counters)
    tensor_names: list[str] = field(default_factory=lambda: ["a.weight", "b.weight"])
    tokenizer: Any = field(
        default_factory=lambda: SimpleNamespace(
            bos_id=BOS_ID,
            bos_token="<s>",
            eos_token="",
            pad_id=BOS_ID,
            add_bos=True,
            special_ids=frozenset({BOS_ID}),
            special_texts=frozenset({"<s>"}),
            eog_ids=frozenset({BOS_ID}),
            least_tokens=lambda text: len(text) // 4,
            encode=lambda text, add_special, parse_special: list(text.encode()),
            token_bytes=lambda token: b"<s>" if token == BOS_ID else bytes([token]),
            first_token_bytes=lambda token: bytes([token]),
        )
    )
    prompts: list[list[int]] = field(default_factory=list)
    continued: list[bool] = field(default_factory=list)  # whether the answer goes on with the prompt's text
    messages: list[list[dict[str, str]]] = field(default_factory=list)
    generations: list[FakeGeneration] = field(default_factory=list)
    adapters: list[tuple[Path, float]] = field(default_factory=list)
    constraints: list[Any] = field(default_factory=list)
    stop_string: str | None = None  # what ends an answer
    closed: bool = False

    def as_text_model(self) -> FakeModel:
        return self

    def pinned(self) -> AbstractContextManager[object]:
        return nullcontext()

    def check_constraint(self, constraint: object) -> None:
        self.constraints.append(constraint)

    def load_lora(self, path: Path, alpha: float) -> AdapterReport:
        if not os.path.exists(path):  # noqa: PTH110  # False also for names that no file can have
            raise NotFoundError("no such file", path=path)
        self.adapters.append((path, alpha))
        return AdapterReport(3, 1, "LoRA loaded")

    def unload_lora(self) -> None:
        self.adapters.clear()

    def tokenize(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        parts = text.split("<s>") if parse_special else [text]
        ids = list(parts[0].encode())
        for part in parts[1:]:
            ids += [BOS_ID, *part.encode()]
        return [BOS_ID, *ids] if add_special else ids

    def detokenize(self, ids: Sequence[int]) -> str:
        return bytes(i for i in ids if i < BOS_ID).decode(errors="replace")

    def chat_prompt_ids(self, messages: list[dict[str, str]], tools: object = None, **variables: Any) -> list[int]:
        self.template_variables.append({"tools": tools, **variables})
        self.messages.append(messages)
        if any(message["role"] == "martian" for message in messages):
            raise BadInputError("the chat template refuses the messages", param="messages")
        if any(message["content"] == "explode" for message in messages):
            raise ZeroDivisionError("a fault in the program")
        return self.tokenize("".join(f"{m['role']}: {m['content']}\n" for m in messages))

    def submit(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        sink: Callable[[Chunk], None],
        *,
        continues: bool = False,
        shown: frozenset[int] = frozenset(),
    ) -> FakeGeneration:
        self.prompts.append(list(prompt_ids))
        self.continued.append(continues)
        seed = FRESH_SEED if sampling.seed is None else sampling.seed
        generation = FakeGeneration(len(prompt_ids), seed, sampling)
        self.generations.append(generation)
        threading.Thread(target=self._generate, args=(generation, sink), daemon=True).start()
        return generation

    def close(self) -> None:
        self.closed = True

    def _generate(self, generation: FakeGeneration, sink: Callable[[Chunk], None]) -> None:
        sampling = generation.sampling
        pieces = self.pieces_of_seed.get(generation.seed, self.pieces)
        logprob = self.logprobs_of_seed.get(generation.seed, 0.0)
        reason = "length" if sampling.max_tokens < len(pieces) else "stop"
        generation.started_s = time.perf_counter()
        generation.cancelled.wait(self.prefill_s)
        for i, piece in enumerate(pieces[: sampling.max_tokens]):
            if generation.cancelled.is_set():
                reason = "cancelled"
                break
            if i == self.fail_after and self.fail_seed in (None, generation.seed):
                generation.error = BadFileError("the file changed under the engine", path="x.modelc")
                reason = "error"
                break
            generation.completion_tokens += 1
            sink(Chunk(piece, (i,), None, (TokenLogprob(i, logprob),) if sampling.logprobs else ()))
            generation.cancelled.wait(self.delay_s)
        generation.finish_reason = reason
        generation.stop_string = self.stop_string
        sink(Chunk("", (), reason))


ClientMaker = Callable[..., TestClient[Litestar]]
ServerMaker = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def client_of() -> Iterator[ClientMaker]:
    """Make clients of an application in this process: of a model (None while loading) and `ServeOptions` fields."""
    opened: list[TestClient[Litestar]] = []

    def make(model: FakeModel | None, **options: Any) -> TestClient[Litestar]:
        server = ServerState(ServeOptions(**options), model)  # type: ignore[arg-type]  # a fake
        client = TestClient(create_app(server))
        opened.append(client.__enter__())
        return client

    yield make
    for client in opened:
        client.__exit__()


@pytest.fixture
def client(client_of: ClientMaker, model: FakeModel) -> TestClient[Litestar]:
    return client_of(model)


@contextmanager
def serving(model: Any, **options: Any) -> Iterator[str]:
    """Serve a model on a real socket in a thread while the block runs, and give the URL."""
    server = ServerState(ServeOptions(**options), model)
    stop = threading.Event()
    listener = bind_listener(server.options.bind, 0)
    url = url_of(listener)
    thread = threading.Thread(target=run_until, args=(stop, server, listener))
    thread.start()
    try:
        yield url
    finally:
        stop.set()
        thread.join(10)


@pytest.fixture
def served() -> ServerMaker:
    """`serving`, for tests that need no import."""
    return serving
