"""A loaded language model: what the library's users, the command line and the server hold."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc.errors import BadInputError, BusyError
from modelc.formats import open_model
from modelc.ir import Model
from modelc.kernels.env import PAGE
from modelc.kernels.objects import ObjectCache, Progress, python_function
from modelc.models import lower
from modelc.models.draft import is_draft_tensor
from modelc.program import Builder
from modelc.runtime.draft import DraftProposer
from modelc.runtime.engine import Engine, Rows, shift_name
from modelc.runtime.generation import Chunk, Generation, Request, Sink
from modelc.runtime.kv_memory import KvMemory, pages_of
from modelc.runtime.memory import physical_bytes
from modelc.runtime.options import ACTIVATIONS, Options
from modelc.runtime.profile import report
from modelc.runtime.sampler import Sampler, Workspace
from modelc.runtime.sampling import Sampling
from modelc.runtime.scheduler import Counters, Scheduler
from modelc.runtime.speculation import PromptLookup, Speculator
from modelc.runtime.threads import default_threads
from modelc.text import (
    ChatTemplate,
    StreamDecoder,
    Tokenizer,
    chat_template_of,
    encode_prompt,
    load_tokenizer,
    shield_messages,
)

MAX_ROWS = 512  # rows of a prompt in one step
MAX_OUT = 64
MAX_SLOTS = 64  # sequences at the same time
KV_SHARE = 4  # keys and values may fill one part in this many of the memory,
KV_BYTES = 2 << 30  # and not more than this, unless one sequence needs it


def load(
    path: str | PathLike[str],
    threads: int | None = None,
    activations: str = "int8",
    kv: str | None = None,
    max_context: int | None = None,
    anchor_tokens: int = 0,
    kv_memory: int | None = None,
    gamma: int = 0,
    kv_hot_window: int = 64,
    progress: Progress | None = None,
) -> LanguageModel:
    """Load a model for inference.

    Args:
        path: A `.modelc`, used in place, or another weights file, repacked in memory.
        threads: Size of the team; None takes the physical cores that the process may use.
        activations: What block-quantized weights are multiplied with: `int8`, or `int16` (slower, nearly exact).
        kv: Type of keys and values: `f16` (None), `f32`, `int8`, or `mixed`: a query reads the newest positions in
            float32 and older ones in int8.
        max_context: Longest sequence. With it, a full context loses its oldest tokens and the answer goes on; without
            it, the answer ends at the context the model was trained for.
        anchor_tokens: First tokens of a sequence that are never dropped.
        kv_memory: Bytes for keys and values; None takes a quarter of the memory at most.
        gamma: Tokens that speculation proposes for one pass; 0 is off. Answers are the same with and without.
        kv_hot_window: Positions that `mixed` reads in float32, the query's own among them.
        progress: Told (done, total, name) about each opcode that has to be compiled.

    Raises:
        BadFileError, UnsupportedError: The file, or what it asks for, cannot be run.
        BadInputError: An argument is out of range.
    """
    options = Options(
        threads or default_threads(),
        activations,
        kv or "f16",
        max_context,
        anchor_tokens,
        kv_memory,
        gamma,
        kv_hot_window,
    )
    options.check()
    return LanguageModel(open_model(path), options, progress)


class LanguageModel:
    """A model that answers. Made by `load`; thread-safe; close it, or use it as a context manager.

    Attributes:
        name: for users.
        architecture: `llama`, …
        tokenizer: its tokenizer.
        chat_template: the Jinja2 source, None when it has none.
        n_ctx: longest sequence.
        vocab_size: number of tokens.
        gamma: most tokens that speculation proposes for one pass.
        n_threads: size of the team.
        total_params: elements of all tensors.
        total_bytes: bytes of all tensors in the source's layout.
        tensor_names: ascending.
    """

    def __init__(self, model: Model, options: Options, progress: Progress | None = None) -> None:
        self.name = model.name
        self.architecture = model.architecture
        self.n_threads = options.threads
        self.total_params = model.total_params
        self.total_bytes = model.total_bytes
        self.tensor_names = list(model.tensors)
        lowered = lower(model)
        self.tokenizer: Tokenizer = load_tokenizer(model.metadata)
        self.chat_template = chat_template_of(model.metadata)
        self._template = ChatTemplate(self.chat_template)
        self.n_ctx = min(lowered.config.n_ctx, options.max_context or lowered.config.n_ctx)
        self.vocab_size = lowered.config.vocab_size
        program = lowered.program(
            Builder(
                max_rows=max(min(MAX_ROWS, self.n_ctx), MAX_SLOTS),
                max_out=MAX_OUT,
                n_threads=options.threads,
                n_ctx=self.n_ctx,
                activation=ACTIVATIONS[options.activations],
                kv=options.kv,
                kv_hot_window=options.kv_hot_window,
            )
        )
        n_pages = _page_budget(program.page_bytes, self.n_ctx, options.kv_memory)
        shifts = options.max_context is not None
        objects = ObjectCache()
        names = [*program.opcodes, "execute", "worker", "spin", "sample"]
        if shifts:
            names += sorted({shift_name(program, layer) for layer in program.kv_layers})
        sample = objects.addresses(names, progress)["sample"]
        self._draft: DraftProposer | None = None
        if options.gamma and any(map(is_draft_tensor, model.tensors)):
            activation = ACTIVATIONS[options.activations]
            self._draft = DraftProposer(model, lowered.weights, activation, objects, progress)
        self._engine = Engine(program, lowered.weights.base, MAX_SLOTS, n_pages, objects)
        self._workspace = Workspace(python_function(sample, 1, 1), self.vocab_size)
        self._weights = lowered.weights  # keeps the file mapped
        self.gamma = options.gamma
        self._scheduler = Scheduler(self._engine, n_pages, options.anchor_tokens if shifts else None)

    # --------------------------------------------------------------------------------------------------- answers

    def submit(
        self, prompt_ids: Sequence[int], sampling: Sampling, sink: Sink, *, continues: bool = False
    ) -> Generation:
        """Start an answer; `sink` gets its chunks from another thread, the last one with a finish reason.

        `continues`: the answer goes on with the prompt's text, so a space at its beginning belongs to it.

        Raises:
            BadInputError: the prompt is empty, too long, or has tokens outside the vocabulary; or `sampling` is out
                of range.
        """
        sampling.check(self.vocab_size)
        prompt = list(prompt_ids)
        self._check_prompt(prompt)
        if len(prompt) >= self.n_ctx:
            raise BadInputError(
                "the prompt is longer than the context",
                param="prompt",
                expected=f"at most {self.n_ctx - 1} tokens",
                got=f"{len(prompt)} tokens",
                hint="shorten it",
            )
        sampler = Sampler(self._workspace, sampling, prompt)
        speculator = None
        if self.gamma:
            speculator = Speculator(self._draft or PromptLookup(), self.gamma, self._engine.costs)
        decoder = StreamDecoder(self.tokenizer, skip_special=True, at_start=not continues)
        request = Request(prompt, sampling, sampler, self.tokenizer.eog_ids, decoder, sink, speculator)
        if sampling.max_tokens == 0:
            request.finish(Chunk("", (), "length"))
        else:
            self._scheduler.submit(request)
        return request.generation

    def stream(self, prompt: str | Sequence[int], **sampling: Any) -> Iterator[str]:
        """The answer to `prompt`, piece by piece; keywords as in `Sampling`. Closing the iterator stops it."""
        ids = self.tokenize(prompt, parse_special=True) if isinstance(prompt, str) else prompt
        chunks: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
        generation = self.submit(ids, Sampling(**sampling), chunks.put, continues=isinstance(prompt, str))
        try:
            while True:
                chunk = chunks.get()
                if chunk.text:
                    yield chunk.text
                if chunk.finish_reason is not None:
                    if generation.error is not None:
                        raise generation.error
                    if chunk.finish_reason == "cancelled":
                        raise BusyError("the model was closed before the answer's end")
                    return
        finally:
            generation.cancel()

    def generate(self, prompt: str | Sequence[int], **sampling: Any) -> str:
        """The answer to `prompt`; keywords are the fields of `Sampling`."""
        return "".join(self.stream(prompt, **sampling))

    def chat(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> str:
        """The assistant's next message."""
        return self.generate(self.chat_prompt_ids(messages), **sampling)

    def chat_prompt_ids(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None, **variables: Any
    ) -> list[int]:
        """Tokens of a conversation by the model's chat template, ready for the assistant's answer; BOS once at most."""
        tokenizer = self.tokenizer
        text = self._template.render(
            shield_messages(messages, tokenizer.special_texts),
            tools=tools,
            bos_token=tokenizer.bos_token,
            eos_token=tokenizer.eos_token,
            **variables,
        )
        return encode_prompt(tokenizer, text)

    # -------------------------------------------------------------------------------------------------- numbers

    def logits(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Logits after each token, float32 (len(ids), vocab_size).

        Raises:
            BadInputError: no tokens, too many, or one outside the vocabulary.
        """
        tokens = list(ids)
        self._check_prompt(tokens)
        if len(tokens) > self.n_ctx:
            raise BadInputError("too many tokens", param="ids", expected=f"at most {self.n_ctx}", got=len(tokens))
        return self._scheduler.call(lambda engine, memory: _all_logits(engine, memory, tokens))

    def tokenize(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of `text`."""
        return self.tokenizer.encode(text, add_special=add_special, parse_special=parse_special)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of token ids; those outside the vocabulary are skipped."""
        return self.tokenizer.decode(ids)

    def _check_prompt(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise BadInputError("the prompt is empty", param="prompt", expected="at least one token")
        wrong = next((t for t in tokens if not 0 <= t < self.vocab_size), None)
        if wrong is not None:
            raise BadInputError("no such token", param="prompt", expected=f"ids below {self.vocab_size}", got=wrong)

    # ------------------------------------------------------------------------------------------------ inspection

    @property
    def counters(self) -> Counters:
        """What the scheduler did so far."""
        return self._scheduler.counters

    def start_profile(self) -> None:
        """Count from now on where the time goes."""
        self._scheduler.call(lambda engine, memory: engine.start_profile())

    def profile_report(self) -> str:
        """What `start_profile` counted: time by kind of instruction and by layer; also of a model that is closed."""
        return report(self._engine.program, *self._engine.profile())

    # ------------------------------------------------------------------------------------------------- lifetime

    def close(self) -> None:
        """End all requests and free what the model holds."""
        self._scheduler.close()
        if self._draft is not None:
            self._draft.close()

    def __enter__(self) -> LanguageModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _page_budget(page_bytes: int, n_ctx: int, kv_memory: int | None) -> int:
    """Pages for as many full sequences as there are slots, within the memory meant for them; at least one sequence."""
    a_sequence = pages_of(n_ctx)
    if kv_memory is None:
        kv_memory = min(physical_bytes() // KV_SHARE, max(KV_BYTES, a_sequence * page_bytes))
    affordable = kv_memory // max(page_bytes, 1)
    if affordable < a_sequence:
        raise BadInputError(
            "keys and values of one sequence do not fit into their memory",
            param="kv_memory",
            expected=f"at least {a_sequence * page_bytes} bytes, or at most {affordable * PAGE} tokens of context",
            got=f"{affordable * page_bytes} bytes for {n_ctx} tokens",
            hint="lower --max-context",
        )
    return min(MAX_SLOTS * a_sequence, affordable)


def _all_logits(engine: Engine, memory: KvMemory, tokens: list[int]) -> npt.NDArray[np.float32]:
    """Logits of every position, computed in the last slot with pages of its own."""
    n = len(tokens)
    out = np.empty((n, engine.program.vocab_size), np.float32)
    slot = engine.n_slots - 1
    with memory.borrowed(pages_of(n)) as pages:
        engine.pages[slot, : len(pages)] = pages
        step = min(engine.program.max_out, engine.program.max_rows)
        for i in range(0, n, step):
            rows = Rows(slot, i, tokens[i : i + step], min(step, n - i))
            out[i : i + step] = engine.run([rows])
    return out
