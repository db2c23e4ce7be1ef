"""Chat templates: messages to the one text that a model was trained to continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NoReturn

from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError

from modelc.errors import BadFileError, BadInputError, ModelcError
from modelc.text.chat_messages import join_parts, merge_system, parts_of
from modelc.text.open_message import cut, opened, refuse_closed
from modelc.text.template_budget import RefusedError, weigh
from modelc.text.template_sandbox import TemplateSandbox

MAX_TEMPLATE_CHARS = 1 << 17
MAX_INPUT_CHARS = 1 << 30
MAX_DATE_CHARS = 256
_PROBE = "Xq7Zv"
_REFUSED = (SecurityError, RecursionError, MemoryError)


class _RaisedByTemplateError(TemplateError):
    """The template called `raise_exception`."""


class ChatTemplate:
    """A compiled chat template; safe to share between threads.

    Args:
        source: Jinja2 source as in `tokenizer.chat_template`; None for `role: content` lines.

    Raises:
        BadFileError: It is no valid template, or asks for what templates may not do.
    """

    def __init__(self, source: str | None) -> None:
        self.source = source
        self._sandbox = TemplateSandbox()
        self._sandbox.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
        if source is None:
            return
        if not isinstance(source, str):  # it comes from a file's metadata
            raise BadFileError("the chat template has the wrong type", expected="text", got=type(source).__name__)
        if len(source) > MAX_TEMPLATE_CHARS:
            raise BadFileError("the chat template is too long", expected=f"up to {MAX_TEMPLATE_CHARS} characters")
        try:
            self._template = self._sandbox.compile_template(source)
        except Exception as error:  # the parser and Python's compiler fail in many ways on hostile text
            raise BadFileError(f"the chat template is not valid: {_reason(error)}") from error

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        bos_token: str = "",
        eos_token: str = "",
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        **kwargs: Any,
    ) -> str:
        """The prompt for `messages`.

        Args:
            messages: Each with `role` and `content`; content is text, or a list of parts of type text (joined with a
                line feed unless the template wants parts), or None beside `tool_calls`.
            tools: JSON schemas of the functions the model may call; an empty list counts as none.
            bos_token: Text of the model's BOS token.
            eos_token: Text of the model's EOS token.
            add_generation_prompt: End with the beginning of the assistant's answer.
            continue_final_message: End with the last message's text instead, without what ends a message.
            **kwargs: More variables for the template, such as `enable_thinking`.

        Raises:
            BadInputError: A message is malformed, cannot be continued, or the template does not take these messages.
            BadFileError: The template asks for what templates may not do, or for too much.
        """
        conversation = join_parts(messages)
        variables = {
            "documents": None,
            **kwargs,
            "tools": list(tools) if tools else None,
            "bos_token": bos_token,
            "eos_token": eos_token,
            "add_generation_prompt": add_generation_prompt and not continue_final_message,
        }
        if not continue_final_message:
            return self._prompt(conversation, variables)
        refuse_closed(messages[-1], f"messages[{len(messages) - 1}]")
        return cut(self._prompt(opened(conversation), variables))

    def _prompt(self, conversation: list[dict[str, Any]], variables: dict[str, Any]) -> str:
        try:
            messages = self._adapted(conversation)
            if self.source is None:
                return "".join(f"{message['role']}: {message['content'] or ''}\n" for message in messages)
            return self._render({**variables, "messages": messages})
        except Exception as error:
            raise _explain(error) from error

    @cached_property
    def takes_tools(self) -> bool:
        """Tools reach the prompt."""
        form = parts_of if self._wants_parts else list
        function = {"name": _PROBE, "description": "", "parameters": {"type": "object", "properties": {}}}
        return self._shows(form([{"role": "user", "content": "?"}]), [{"type": "function", "function": function}])

    def _adapted(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`messages` without what this template does not take, said in another way."""
        if "developer" not in (self.source or ""):
            messages = [{**m, "role": "system"} if m["role"] == "developer" else m for m in messages]
        if any(message["role"] == "system" for message in messages) and not self._takes_system:
            messages = merge_system(messages)
        return parts_of(messages) if self._wants_parts else messages

    @cached_property
    def _wants_parts(self) -> bool:
        """Content reaches the prompt as a list of parts only."""
        user = [{"role": "user", "content": _PROBE}]
        return not self._shows(user) and self._shows(parts_of(user))

    @cached_property
    def _takes_system(self) -> bool:
        """System messages reach the prompt as such, or in no other way either."""
        form = parts_of if self._wants_parts else list
        messages = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "?"}]
        return self._shows(form(messages)) or not self._shows(form(merge_system(messages)))

    def _shows(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None) -> bool:
        """Whether the probe's text is in the prompt."""
        if self.source is None:
            return False
        try:
            return _PROBE in self._render({"messages": messages, "tools": tools, "bos_token": "", "eos_token": ""})
        except _REFUSED:
            raise
        except Exception:  # what a template does not take, it fails on in its own way
            return False

    def _render(self, variables: Mapping[str, Any]) -> str:
        return self._sandbox.render(self._template, variables, weigh(variables, MAX_INPUT_CHARS))


def apply_chat_template(
    template: str | None,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    bos_token: str = "",
    eos_token: str = "",
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    **kwargs: Any,
) -> str:
    """The prompt that `template` makes of `messages`; see `ChatTemplate.render`, which also saves compiling again."""
    return ChatTemplate(template).render(
        messages,
        tools=tools,
        bos_token=bos_token,
        eos_token=eos_token,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        **kwargs,
    )


def _raise_exception(message: object = "") -> NoReturn:
    raise _RaisedByTemplateError(str(message))


def _strftime_now(pattern: str) -> str:
    if len(pattern) > MAX_DATE_CHARS:
        raise RefusedError(f"it writes a date in more than {MAX_DATE_CHARS} characters")
    return datetime.now().strftime(pattern)


def _explain(error: Exception) -> ModelcError:
    if isinstance(error, _RaisedByTemplateError):
        return BadInputError(error.message or "the chat template does not take these messages", param="messages")
    if isinstance(error, _REFUSED):
        return BadFileError(f"the chat template was refused: {_reason(error)}")
    return BadInputError(f"the chat template does not take these messages: {_reason(error)}", param="messages")


def _reason(error: Exception) -> str:
    if isinstance(error, TemplateSyntaxError):
        return f"{error.message}, line {error.lineno}"
    return str(error) or type(error).__name__
