"""What `modelc chat` does with lines that begin with a slash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

from modelc.cli.conversation import Conversation
from modelc.cli.sampling_options import SamplingOptions
from modelc.errors import BadInputError, did_you_mean

SET_AGAIN = ("default", "none")  # values of /set that bring the built-in one back
OTHER_WORDS = {"/bye": "/exit", "/quit": "/exit", "/?": "/help"}  # what other programs call them


class LeaveChat(Exception):  # no error: the way out of the loop
    """The user wants to go."""


def obey(line: str, conversation: Conversation) -> str:
    """Carry out a command and return what to tell the user.

    Args:
        line: begins with a slash.
        conversation: what it is about.

    Raises:
        BadInputError: no such command, or a wrong value.
        LeaveChat: it was `/exit`.
    """
    word, _, argument = line.partition(" ")
    word = OTHER_WORDS.get(word, word)
    if word not in CHAT_COMMANDS:
        hint = did_you_mean(word, CHAT_COMMANDS) or "/help lists the commands; a space in front makes it a message"
        raise BadInputError("no such command", got=word, hint=hint)
    return CHAT_COMMANDS[word][0](conversation, argument.strip())


def _system(conversation: Conversation, text: str) -> str:
    if not text:
        return conversation.system or "no system message; /system TEXT sets one, /system none removes it"
    conversation.system = None if text == "none" else text
    return "no system message any more" if conversation.system is None else "system message set"


def _set(conversation: Conversation, text: str) -> str:
    types = get_type_hints(SamplingOptions)
    name, _, value = text.replace("=", " ", 1).partition(" ")
    name = name.strip().lstrip("-").replace("-", "_")
    if not name:
        return "\n".join(f"{key} {conversation.sampling.get(key, 'default')}" for key in types)
    if name not in types:
        hint = did_you_mean(name, types) or f"the options are {', '.join(types)}"
        raise BadInputError("no such option", got=name, hint=hint)
    value = value.strip()
    if not value:
        return f"{name} {conversation.sampling.get(name, 'default')}"
    conversation.set(**{name: None if value in SET_AGAIN else _converted(name, value, types[name])})
    return f"{name} {conversation.sampling.get(name, 'default')}"


def _converted(name: str, text: str, hint: Any) -> object:
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind in (int, float, str)]
    for kind in kinds or [str]:
        try:
            converted: object = kind(text)
            return converted
        except ValueError:
            continue
    expected = "a whole number" if kinds == [int] else "a number"
    raise BadInputError("not a value", param=name, got=repr(text), expected=expected)


def _clear(conversation: Conversation, _: str) -> str:
    conversation.clear()
    return "the conversation begins anew"


def _save(conversation: Conversation, text: str) -> str:
    if not text:
        raise BadInputError("where to?", expected="/save FILE.md, or FILE.json")
    from modelc.formats.atomic import atomic_write

    path = Path(text).expanduser()
    if path.exists() and path.resolve() not in conversation.saved:
        raise BadInputError("this file exists", got=text, hint="choose another name")
    system = [] if conversation.system is None else [{"role": "system", "content": conversation.system}]
    messages = [*system, *conversation.messages]
    if path.suffix == ".json":
        saved = {"model": conversation.model.name, "sampling": conversation.sampling, "messages": messages}
        content = json.dumps(saved, indent=2, ensure_ascii=False) + "\n"
    else:
        content = "\n".join(f"## {message['role']}\n\n{message['content'].strip()}\n" for message in messages)
    with atomic_write(path) as file:
        file.write(content.encode("utf-8", "replace"))
    conversation.saved.add(path.resolve())
    return f"saved {len(messages)} messages in {path}"


def _stats(conversation: Conversation, _: str) -> str:
    return str(conversation.last) if conversation.last else "no answer yet"


def _help(_: Conversation, __: str) -> str:
    width = max(len(f"{word} {usage}") for word, (_, usage, _) in CHAT_COMMANDS.items())
    lines = [f"{f'{word} {usage}'.ljust(width)}  {does}" for word, (_, usage, does) in CHAT_COMMANDS.items()]
    return "\n".join(
        [*lines, '"""'.ljust(width) + "  begins and ends a message of several lines; so does \\ at a line's end"]
    )


def _leave(_: Conversation, __: str) -> str:
    raise LeaveChat


Command = Callable[[Conversation, str], str]
CHAT_COMMANDS: dict[str, tuple[Command, str, str]] = {
    "/system": (_system, "[TEXT]", "shows or sets the system message; none removes it"),
    "/set": (_set, "[NAME VALUE]", "shows or sets a sampling option, like temperature 0.8"),
    "/clear": (_clear, "", "forgets what was said"),
    "/save": (_save, "FILE", "writes the conversation as Markdown, or JSON where the name ends in .json"),
    "/stats": (_stats, "", "tells how fast the last answer was"),
    "/help": (_help, "", "shows this"),
    "/exit": (_leave, "", "leaves, as Ctrl-D does; Ctrl-C stops an answer"),
}
