"""One loaded model of any kind: what the library's users, the command line and the server hold.

A kind of model is a class of its own (`LanguageModel`, `Encoder`, `Mlp`, …) that overrides what it can do; everything
else refuses, and says what the model can do instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.errors import BadInputError, UnsupportedError
from modelc.ir import Model
from modelc.runtime.scheduler import Counters
from modelc.runtime.texts import as_ids
from modelc.text import Tokenizer, chat_template_of, load_tokenizer

if TYPE_CHECKING:
    from modelc.kernels.source import Progress
    from modelc.runtime.adapters import AdapterReport
    from modelc.runtime.text_model import TextModel

F32: TypeAlias = npt.NDArray[np.float32]

# What a model may be able to do, by the name of the method, in words.
ABILITIES = {
    "generate": "generate text",
    "embed": "embed texts",
    "hidden": "give hidden states of tokens",
    "logits": "give logits of tokens",
    "infer": "turn numbers into numbers",
    "adapt": "take LoRA adapters",
    "profile": "tell where its time goes",
}


class LoadedModel:
    """A model that is ready. Thread-safe; close it, or use it as a context manager.

    Attributes:
        kind: for messages, with its article.
        abilities: keys of ABILITIES: what this kind does.
        fallback: what takes the place of inference where the model cannot be run, for example `echo`.
        name: for users.
        architecture: `llama`, …
        n_threads: size of the team.
        total_params: elements of all tensors.
        total_bytes: bytes of all tensors in the source's layout.
        tensor_names: ascending.
        tokenizer: its tokenizer; bytes as tokens for a model without one.
        chat_template: the Jinja2 source, None when it has none.
        vocab_size: number of tokens.
        n_ctx: longest sequence; None where there are no sequences.
        gamma: most tokens that speculation proposes for one pass.
        kv: type of keys and values; None where there are none.
    """

    kind: ClassVar[str] = "a model"
    abilities: ClassVar[tuple[str, ...]] = ()
    fallback: ClassVar[str | None] = None
    n_ctx: int | None = None
    gamma: int = 0
    kv: str | None = None

    def __init__(self, model: Model, n_threads: int) -> None:
        self.name = model.name
        self.architecture = model.architecture
        self.n_threads = n_threads
        self.total_params = model.total_params
        self.total_bytes = model.total_bytes
        self.tensor_names = list(model.tensors)
        self.tokenizer: Tokenizer = load_tokenizer(model.metadata)
        self.chat_template = chat_template_of(model.metadata)
        self.vocab_size = self.tokenizer.vocab_size

    def refusal(self, ability: str) -> UnsupportedError:
        """The error for what this kind of model does not do; it says what it does."""
        able = ", ".join(f"{ABILITIES[each]} ({each})" for each in self.abilities) or "be inspected"
        return UnsupportedError(f"{self.kind} cannot {ABILITIES[ability]}", hint=f"it can {able}")

    def require(self, ability: str) -> None:
        """Raise UnsupportedError unless this kind of model has `ability`, one of ABILITIES."""
        if ability not in self.abilities:
            raise self.refusal(ability)

    def as_text_model(self) -> TextModel:
        """The same object, where it can generate text.

        Raises:
            UnsupportedError: It cannot.
        """
        raise self.refusal("generate")

    # --------------------------------------------------------------------------------------------------- answers

    def stream(self, prompt: str | Sequence[int], **sampling: Any) -> Iterator[str]:
        """The answer to `prompt`, piece by piece; keywords as in `Sampling`. Closing the iterator stops it."""
        return self.as_text_model().stream(prompt, **sampling)

    def generate(self, prompt: str | Sequence[int], **sampling: Any) -> str:
        """The answer to `prompt`; keywords are the fields of `Sampling`."""
        return self.as_text_model().generate(prompt, **sampling)

    def chat(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> str:
        """The assistant's next message, or what follows a last message of its own; keywords as in `TextModel.chat`."""
        return self.as_text_model().chat(messages, **sampling)

    # -------------------------------------------------------------------------------------------------- numbers

    def embed(self, texts: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> F32:
        """Embeddings, float32: (dim,) of one text or one list of token ids, (n, dim) of a list of n of either.

        A text has the same bits alone and among others.

        Raises:
            BadInputError: No text, one without tokens, or one with too many of them.
        """
        raise self.refusal("embed")

    def hidden(self, ids: Sequence[int]) -> F32:
        """Last hidden states, after the final norm, float32 (len(ids), dim)."""
        raise self.refusal("hidden")

    def logits(self, ids: Sequence[int]) -> F32:
        """Logits after each token, float32 (len(ids), vocab_size)."""
        raise self.refusal("logits")

    def infer(self, values: Any) -> Any:
        """Numbers in, numbers out.

        Args:
            values: One input (a vector, for most models), a list of them, which go through the model as one batch, or,
                for graphs with several inputs, arrays by name.

        Returns:
            float32 arrays: of one input its output, of a list one row for each, of names arrays by name.

        Raises:
            BadInputError: Wrong sizes or types.
        """
        raise self.refusal("infer")

    def example_inputs(self, n_inputs: int) -> Any:
        """Values that `infer` takes, `n_inputs` of them in one batch: for measuring, they mean nothing."""
        raise self.refusal("infer")

    def tokenize(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of `text`."""
        if not isinstance(text, str):
            raise BadInputError("wrong type", param="text", expected="a string", got=type(text).__name__)
        return self.tokenizer.encode(text, add_special=add_special, parse_special=parse_special)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of token ids; those outside the vocabulary are skipped."""
        return self.tokenizer.decode(as_ids(ids))

    # -------------------------------------------------------------------------------------------------- adapters

    def load_lora(self, path: str | PathLike[str], alpha: float = 1.0) -> AdapterReport:
        """Use a LoRA adapter, in place of the one in use, for all answers that begin from now on.

        Answers that have begun end on the weights they began with.

        Args:
            path: A Safetensors or GGUF file, or the folder of a PEFT adapter.
            alpha: Factor to the scale that the adapter was trained with; 1 leaves it.

        Returns:
            How many weights were adapted, and how many of the file's tensors skipped.

        Raises:
            NotFoundError, BadFileError, UnsupportedError: The file cannot be used; nothing has changed.
            BadInputError: `alpha` is out of range; nothing has changed.
        """
        return self.load_loras([(path, alpha)])

    def load_loras(
        self, adapters: Sequence[tuple[str | PathLike[str], float]], progress: Progress | None = None
    ) -> AdapterReport:
        """Use several LoRA adapters together, as `load_lora` uses one.

        Args:
            adapters: Files with their factors.
            progress: Told (done, total, name) about each opcode that has to be compiled.
        """
        raise self.refusal("adapt")

    def unload_lora(self) -> None:
        """Go back to the model's own weights, for all answers that begin from now on; nothing without an adapter."""

    def pinned(self) -> AbstractContextManager[object]:
        """Answers that one thread begins in this context have the same adapters."""
        return nullcontext()

    # ------------------------------------------------------------------------------------------------ inspection

    @property
    def counters(self) -> Counters:
        """What the scheduler did so far; zeros where there is none."""
        return Counters()

    def start_profile(self) -> None:
        """Count from now on where the time goes."""
        raise self.refusal("profile")

    def profile_report(self) -> str:
        """What `start_profile` counted: time by kind of instruction and by layer; also of a model that is closed."""
        raise self.refusal("profile")

    # ------------------------------------------------------------------------------------------------- lifetime

    def close(self) -> None:
        """End all requests and free what the model holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
