"""`modelc chat` with pipes, and on a terminal of its own."""

from __future__ import annotations

import io
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Modelc
from tests.cli.talking_model import TalkingModel

CHILD = """
import sys
from modelc.cli import chat, main
from tests.cli.talking_model import TalkingModel
chat.load_model = lambda path, **options: TalkingModel()
sys.exit(main(["chat", "tiny", *sys.argv[1:]]))
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def talker(modelc: Modelc, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> TalkingModel:
    """The model that `chat tiny` loads."""
    modelc("pack", gguf, "--name", "tiny")
    model = TalkingModel()
    monkeypatch.setattr("modelc.cli.chat.load_model", lambda path, **options: model)
    return model


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Puts bytes where standard input is read."""

    def put(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False))

    put(b"")
    return put


def test_one_question_gets_one_answer(modelc: Modelc, talker: TalkingModel, piped: Callable[[bytes], None]) -> None:
    result = modelc("chat", "tiny", "hello there", "--system", "be brief", "--seed", 3)
    assert (result.code, result.out, result.err) == (0, "hello there \n", "")
    assert talker.conversations[-1][0] == {"role": "system", "content": "be brief"}
    assert (talker.samplings[-1].seed, talker.samplings[-1].max_tokens) == (3, 1024)
    assert talker.closed


def test_piped_text_comes_before_the_question(
    modelc: Modelc, talker: TalkingModel, piped: Callable[[bytes], None]
) -> None:
    piped("Ein Text, größer.\n".encode() + b"\xff")
    assert modelc("chat", "tiny", "summarise").code == 0
    assert talker.conversations[-1][-1]["content"] == "Ein Text, größer.\n�\n\nsummarise"
    piped(b"only this\n")
    assert modelc("chat", "tiny").out == "only this \n"


@pytest.mark.parametrize(
    ("tokens", "content", "code", "told"),
    [
        (["tiny"], b" \n", 2, "nothing was asked: expected a PROMPT, or text on standard input"),
        (["tiny", "x" * 300], b"", 2, "longer than the context"),
        (["tiny", "--temperature", "-1", "hi"], b"", 2, "out of range: 'temperature'"),
        (["tiny", "fail now"], b"", 1, "the file changed"),
        (["tyni", "hi"], b"", 1, "no model 'tyni' in the store"),
        (["tiny", "hi"], b"x" * ((16 << 20) + 1), 2, "the input is too long: expected at most 16 MiB"),
    ],
)
def test_what_goes_wrong_is_one_line(
    modelc: Modelc,
    talker: TalkingModel,
    piped: Callable[[bytes], None],
    tokens: list[str],
    content: bytes,
    code: int,
    told: str,
) -> None:
    piped(content)
    result = modelc("chat", *tokens)
    assert result.code == code
    assert told in result.err
    assert result.err.count("\n") == 1


def test_a_cut_answer_says_so_beside_the_answer(
    modelc: Modelc, talker: TalkingModel, piped: Callable[[bytes], None]
) -> None:
    result = modelc("chat", "tiny", "one two three", "--max-tokens", 2)
    assert (result.out, result.err) == ("one two \n", "cut after 2 tokens; max_tokens allows more\n")


class Terminal:
    """A process on a terminal: what it wrote, and keys for it."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.text = ""

    def keys(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def wait_for(self, pattern: str) -> str:
        """What was written up to `pattern`, which is then behind us."""
        end_s = time.monotonic() + 60
        while (found := re.search(pattern, self.text)) is None:
            left_s = end_s - time.monotonic()
            assert left_s > 0 and select.select([self._descriptor], [], [], left_s)[0], f"{pattern!r}: {self.text!r}"
            self.text += os.read(self._descriptor, 4096).decode()
        before, self.text = self.text[: found.end()], self.text[found.end() :]
        return before


@pytest.fixture
def terminal(modelc: Modelc, gguf: Path) -> Iterator[Terminal]:
    pty = pytest.importorskip("pty")
    modelc("pack", gguf, "--name", "tiny")
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        env=environment,
    )
    os.close(side)
    try:
        yield Terminal(process, main)
    finally:
        process.kill()
        process.wait()
        os.close(main)


def test_a_conversation_on_a_terminal(terminal: Terminal, home: Path) -> None:
    terminal.wait_for(r"talker; /help lists the commands\r\n.*>>> ")
    terminal.keys("hello there\n")
    terminal.wait_for(r"hello there\r\n.*hello there\r\n.*>>> ")
    terminal.keys('"""one\ntwo"""\n')
    terminal.wait_for(r"two\"\"\"\r\n.*one\r?\ntwo\r\n.*>>> ")
    terminal.keys("three \\\nfour\n")
    terminal.wait_for(r"four\r\n.*three\r?\nfour\r\n.*>>> ")
    terminal.keys("/set temperature 2\n")
    terminal.wait_for(r"temperature 2.0\r\n.*>>> ")
    terminal.keys("/nothing\n")
    terminal.wait_for(r"no such command.*\r\n.*>>> ")
    terminal.keys("\x04")
    assert terminal.process.wait(60) == 0
    kept = home / ".modelc" / "chat_history"
    assert "hello there" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_stops_the_answer_and_not_the_program(terminal: Terminal) -> None:
    terminal.wait_for(">>> ")
    terminal.keys("for ever\n")
    terminal.wait_for("ever and")
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.wait_for(r"stopped\r\n.*>>> ")
    time.sleep(0.2)  # Python shows the prompt a moment before it waits for keys, and loses a signal between
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.wait_for(r"Ctrl-D leaves.*\r\n.*>>> ")
    terminal.keys("still here\n")
    terminal.wait_for(r"still here\r\n.*still here\r\n")
    terminal.keys("/exit\n")
    assert terminal.process.wait(60) == 0
