"""A loaded language model: a decoder that answers many requests at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc.constraints import Constraint, ConstraintCompiler
from modelc.errors import BadInputError
from modelc.ir import Model
from modelc.kernels.env import PAGE
from modelc.kernels.objects import python_function
from modelc.kernels.source import Progress
from modelc.memory_limit import memory_limit
from modelc.models import lower
from modelc.models.draft import is_draft_tensor
from modelc.program import Builder
from modelc.runtime.adapters import AdapterReport, Adapters
from modelc.runtime.draft import DraftProposer
from modelc.runtime.embedding import EmbeddingRequest, embed_all
from modelc.runtime.engine import Engine, Rows, shift_name
from modelc.runtime.forward import Forward
from modelc.runtime.generation import Chunk, Generation, Request, Sink
from modelc.runtime.kv_memory import KvMemory, pages_of
from modelc.runtime.loaded import F32
from modelc.runtime.log_probability import LogProbabilities
from modelc.runtime.options import ACTIVATIONS, Options
from modelc.runtime.profile import report
from modelc.runtime.sampler import Sampler, Workspace
from modelc.runtime.sampling import Sampling
from modelc.runtime.scheduler import Counters, Scheduler
from modelc.runtime.speculation import PromptLookup, Speculator
from modelc.runtime.text_model import TextModel
from modelc.runtime.texts import as_ids, check_ids, token_lists
from modelc.runtime.vectors import as_rows, resized
from modelc.text import StreamDecoder

MAX_ROWS = 512  # rows of a prompt in one step
MAX_OUT = 64
MAX_SLOTS = 64  # sequences at the same time
KV_SHARE = 4  # keys and values may fill one part in this many of the memory,
KV_BYTES = 2 << 30  # and not more than this, unless one sequence needs it


class LanguageModel(TextModel):
    """A decoder: an engine, and a scheduler that owns it."""

    kind = "a language model"
    abilities = ("generate", "embed", "hidden", "logits", "infer", "adapt", "profile")

    def __init__(self, model: Model, options: Options, progress: Progress | None = None) -> None:
        lowered = lower(model)
        super().__init__(model, options.threads)
        self.n_ctx = min(lowered.config.n_ctx, options.max_context or lowered.config.n_ctx)
        self.vocab_size = lowered.config.vocab_size
        builder = partial(
            Builder,
            max_rows=max(min(MAX_ROWS, self.n_ctx), MAX_SLOTS),
            max_out=MAX_OUT,
            n_threads=options.threads,
            n_ctx=self.n_ctx,
            activation=ACTIVATIONS[options.activations],
            kv=options.kv,
            kv_hot_window=options.kv_hot_window,
        )
        program = lowered.program(builder())
        n_pages = _page_budget(program.page_bytes, self.n_ctx, options.kv_memory)
        shifts = options.max_context is not None
        objects = options.kernel_source
        names = [*program.opcodes, "execute", "worker", "spin", "sample", "log_softmax"]
        if shifts:
            names += sorted({shift_name(program, layer) for layer in program.kv_layers})
        addresses = objects.addresses(names, progress)
        self._draft: DraftProposer | None = None
        if options.gamma and any(map(is_draft_tensor, model.tensors)):
            activation = ACTIVATIONS[options.activations]
            self._draft = DraftProposer(model, lowered.weights, activation, objects, progress)
        self._engine = Engine(program, lowered.weights.base, MAX_SLOTS, n_pages, objects)
        self._workspace = Workspace(
            lambda name: python_function(objects.addresses([name])[name], 1, 1), self.tokenizer, self.vocab_size
        )
        self._log_probabilities = LogProbabilities(python_function(addresses["log_softmax"], 1, 0), self.vocab_size)
        self._constraints = ConstraintCompiler(self.tokenizer, self.vocab_size)
        self._options = options
        self._vectors: Forward | None = None  # made when it is first asked for
        self._vectors_lock = threading.Lock()
        self.gamma = options.gamma
        self.kv = options.kv
        self._scheduler = Scheduler(self._engine, n_pages, options.anchor_tokens if shifts else None)
        self._adapters = Adapters(lowered, model.architecture, builder, self._engine, self._scheduler, objects)

    # --------------------------------------------------------------------------------------------------- answers

    def submit(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        sink: Sink,
        *,
        continues: bool = False,
        shown: frozenset[int] = frozenset(),
    ) -> Generation:
        """Start an answer; `sink` gets its chunks from another thread, the last one with a finish reason.

        `continues`: the answer goes on with the prompt's text, so a space at its beginning belongs to it.
        `shown`: control tokens that stay in the text.

        Raises:
            BadInputError: the prompt is empty, too long, or has tokens outside the vocabulary; or `sampling` is out
                of range, or its constraint cannot be followed.
        """
        sampling.check(self.vocab_size)
        prompt = as_ids(prompt_ids, "prompt")
        check_ids(prompt, self.vocab_size, len(prompt), "prompt")
        if len(prompt) >= self.n_ctx:
            raise BadInputError(
                "the prompt is longer than the context",
                param="prompt",
                expected=f"at most {self.n_ctx - 1} tokens",
                got=f"{len(prompt)} tokens",
                hint="shorten it",
            )
        constraint = sampling.constraint
        automaton = None if constraint is None else self._constraints.automaton(constraint)
        sampler = Sampler(self._workspace, sampling, prompt, automaton)
        speculator = None
        if self.gamma:
            speculator = Speculator(self._draft or PromptLookup(), self.gamma, self._engine.costs)
        decoder = StreamDecoder(self.tokenizer, True, at_start=not (continues or constraint), shown=shown)
        likely = self._log_probabilities
        request = Request(prompt, sampling, sampler, self.tokenizer.eog_ids, decoder, likely, sink, speculator)
        if sampler.finished:
            request.finish(Chunk("", (), "stop"))
        elif sampling.max_tokens == 0 and not sampling.prompt_logprobs:
            request.finish(Chunk("", (), "length"))
        else:
            self._scheduler.submit(request)
        return request.generation

    def check_constraint(self, constraint: Constraint) -> None:
        """Raise BadInputError for a constraint that answers cannot follow; slow the first time."""
        self._constraints.automaton(constraint)

    # -------------------------------------------------------------------------------------------------- numbers

    def embed(self, texts: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> F32:
        """The last hidden state, after the final norm, of the last token: float32 (dim,), of a list (n, dim).

        Texts get the special tokens that the model expects around them; ids are taken as they are.
        """
        tokens, alone = token_lists(texts, self.tokenize)
        for ids in tokens:
            check_ids(ids, self.vocab_size, self.n_ctx, "texts")
        vectors = embed_all([self._embedding_of(ids) for ids in tokens], self._scheduler)
        return vectors[0] if alone else vectors

    def _embedding_of(self, tokens: list[int]) -> EmbeddingRequest:
        sampling = Sampling(max_tokens=0)
        sampler, decoder = Sampler(self._workspace, sampling, tokens, None), StreamDecoder(self.tokenizer)
        return EmbeddingRequest(tokens, sampling, sampler, frozenset(), decoder, self._log_probabilities)

    def hidden(self, ids: Sequence[int]) -> F32:
        """Last hidden states, after the final norm, float32 (len(ids), dim).

        Raises:
            BadInputError: no tokens, too many, or one outside the vocabulary.
        """
        tokens = as_ids(ids)
        check_ids(tokens, self.vocab_size, self.n_ctx)
        return self._scheduler.call(lambda engine, memory: _all_rows(engine, memory, tokens, hidden=True))

    def infer(self, values: Any) -> F32:
        """Logits, float32 (vocab_size,), of a vector that goes through the layers in place of the first token's.

        Args:
            values: numbers, or a list of lists of them, of which each stands for itself: (n, vocab_size). They are cut
                or filled with zeros to the hidden size.
        """
        with self._vectors_lock:
            lowered = self._adapters.in_use
            if self._vectors is None or self._vectors.lowered is not lowered:
                self._vectors = Forward(lowered, self._options, 1, 1, vectors=True)
            vectors = self._vectors
        dim = self._engine.program.hidden_dim
        rows, alone = as_rows(values)
        logits = np.stack([vectors.of_vectors(resized(row, dim))[0] for row in rows])
        return logits[0] if alone else logits

    def logits(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Logits after each token, float32 (len(ids), vocab_size).

        Raises:
            BadInputError: no tokens, too many, or one outside the vocabulary.
        """
        tokens = as_ids(ids)
        check_ids(tokens, self.vocab_size, self.n_ctx)
        return self._scheduler.call(lambda engine, memory: _all_rows(engine, memory, tokens, hidden=False))

    # -------------------------------------------------------------------------------------------------- adapters

    def load_loras(
        self, adapters: Sequence[tuple[str | PathLike[str], float]], progress: Progress | None = None
    ) -> AdapterReport:
        """Use several LoRA adapters together, as `load_lora` uses one."""
        return self._adapters.load([(Path(path), alpha) for path, alpha in adapters], progress)

    def unload_lora(self) -> None:
        """Go back to the model's own weights, for all answers that begin from now on."""
        self._adapters.unload()

    def pinned(self) -> AbstractContextManager[object]:
        """Answers that one thread begins in this context have the same adapters."""
        return self._scheduler.pinned()

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
        return report(self._scheduler.engine.program, *self._scheduler.engine.profile())

    # ------------------------------------------------------------------------------------------------- lifetime

    def close(self) -> None:
        """End all requests and free what the model holds."""
        self._scheduler.close()
        self._constraints.close()
        for other in (self._draft, self._vectors):
            if other is not None:
                other.close()


def _page_budget(page_bytes: int, n_ctx: int, kv_memory: int | None) -> int:
    """Pages for as many full sequences as there are slots, within the memory meant for them; at least one sequence."""
    a_sequence = pages_of(n_ctx)
    if kv_memory is None:
        kv_memory = min(memory_limit() // KV_SHARE, max(KV_BYTES, a_sequence * page_bytes))
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


def _all_rows(engine: Engine, memory: KvMemory, tokens: list[int], hidden: bool) -> F32:
    """Hidden states or logits of every position, computed in the last slot with pages of its own."""
    n, program = len(tokens), engine.program
    out = np.empty((n, program.hidden_dim if hidden else program.vocab_size), np.float32)
    slot = engine.n_slots - 1
    with memory.borrowed(pages_of(n)) as pages:
        engine.pages[slot, : len(pages)] = pages
        step = min(engine.program.max_out, engine.program.max_rows)
        for i in range(0, n, step):
            rows = Rows(slot, i, tokens[i : i + step], min(step, n - i))
            logits = engine.run([rows])
            out[i : i + step] = engine.hidden(rows.outputs) if hidden else logits
    return out
