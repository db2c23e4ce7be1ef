"""`modelc chat`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.chat_commands import CHAT_COMMANDS, LeaveChat, obey
from modelc.cli.colour import DIM, paint
from modelc.cli.conversation import Conversation
from modelc.cli.loading import load_model
from modelc.cli.options import ActivationsOption, KvOption, ModelOption, StoreOption, open_store
from modelc.cli.prompt_reader import PromptReader
from modelc.cli.sampling_options import NOTHING_SAID, SamplingOptions
from modelc.cli.text import printable, safe_text, terminal_width
from modelc.cli.word_wrap import WordWrap
from modelc.errors import BadInputError, ModelcError
from modelc.resolve import find_model
from modelc.settings import load_settings

EXAMPLES = """Examples:
  modelc chat smollm2
  modelc chat smollm2 "Name three rivers in Italy"
  cat report.txt | modelc chat smollm2 "Summarise this in one sentence"
  modelc chat smollm2 --system "You are a pirate." --temperature 0.8 --seed 1

In a conversation /help lists what else can be done."""
# A person reads longer answers than a program asks for, and small models repeat themselves.
DEFAULTS = {"max_tokens": 1024, "repetition_penalty": 1.1}
MAX_INPUT_BYTES = 16 << 20


def chat(
    model: Annotated[ModelOption, Parameter(help="A name in the store (NAME or NAME:VERSION), or a model file.")],
    prompt: Annotated[
        str | None, Parameter(help="One message to answer, instead of a conversation; piped input comes before it.")
    ] = None,
    /,
    *,
    system: Annotated[str | None, Parameter(help="The system message.")] = None,
    sampling: SamplingOptions = NOTHING_SAID,
    threads: Annotated[
        int | None, Parameter(help="Compute threads. [default: the free physical cores]", validator=Number(gte=1))
    ] = None,
    kv: KvOption = None,
    activations: ActivationsOption = "int8",
    store: StoreOption = None,
) -> None:
    """Talk to a model in the terminal; its answers appear word by word."""
    settings = load_settings()
    path = find_model(model, open_store(store, settings))
    asked = _asked(prompt)
    threads = threads or settings.threads
    with load_model(path, threads=threads, kv=kv, activations=activations) as loaded:
        conversation = Conversation(loaded.as_text_model(), DEFAULTS | sampling.given(), system)
        if asked is not None:
            _answer(conversation, asked)
            return
        print(paint(f"{printable(loaded.name)}; /help lists the commands", DIM, sys.stderr), file=sys.stderr)
        with PromptReader(_history_file(), list(CHAT_COMMANDS)) as reader, contextlib.suppress(EOFError, LeaveChat):
            _talk(conversation, reader)


def _asked(prompt: str | None) -> str | None:
    """Return the one message to answer: piped input, the prompt, or both; None for a conversation."""
    if sys.stdin is None or sys.stdin.isatty():
        piped = ""
    else:
        content = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        if len(content) > MAX_INPUT_BYTES:
            raise BadInputError("the input is too long", expected=f"at most {MAX_INPUT_BYTES >> 20} MiB", hint="cut it")
        piped = content.decode("utf-8", "replace").strip()
    if prompt is None and not piped and sys.stdin is not None and sys.stdin.isatty():
        return None
    asked = "\n\n".join(filter(None, [piped, prompt]))
    if not asked.strip():
        raise BadInputError("nothing was asked", expected="a PROMPT, or text on standard input")
    return asked


def _talk(conversation: Conversation, reader: PromptReader) -> None:
    """Answer message after message until the user leaves."""
    while True:
        try:
            text = reader.read()
        except KeyboardInterrupt:
            _tell("\nCtrl-D leaves, Ctrl-C stops an answer")
            continue
        if not text.strip():
            continue
        try:
            if text.startswith("/"):
                _tell(obey(text.strip(), conversation))
            else:
                _answer(conversation, text.strip())
        except ModelcError as error:
            _tell(str(error))
        except KeyboardInterrupt:
            _tell("\nstopped")


def _answer(conversation: Conversation, text: str) -> None:
    """Write the answer as it comes."""
    width = terminal_width()
    wrap = None if width is None else WordWrap(width)
    with contextlib.closing(conversation.ask(text)) as pieces:
        try:
            for piece in pieces:
                sys.stdout.write(piece if wrap is None else wrap.push(safe_text(piece)))
                sys.stdout.flush()
        finally:
            if wrap is not None:
                sys.stdout.write(wrap.flush())
    print(flush=True)
    if conversation.left_out:
        _tell(f"the oldest {conversation.left_out} messages no longer fit into the context and were left out")
    if conversation.last is not None and conversation.last.finish_reason == "length":
        _tell(f"cut after {conversation.last.tokens} tokens; max_tokens allows more")


def _tell(text: str) -> None:
    print(paint(safe_text(text), DIM, sys.stderr), file=sys.stderr, flush=True)


def _history_file() -> Path | None:
    with contextlib.suppress(RuntimeError):  # no home folder is known
        return Path.home() / ".modelc" / "chat_history"
    return None
