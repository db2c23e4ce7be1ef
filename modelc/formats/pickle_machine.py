"""Reads the pickle of a PyTorch checkpoint without running anything that it names.

Python's own unpickler calls what the file says, and hashes and copies what it builds; this is a stack machine for the
operations that checkpoints need. It builds dictionaries, lists, tuples, text, numbers and descriptions of tensors, and
refuses every global that is not in a table. The form of the operations' arguments is the standard library's, from
`pickletools`.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.torch_globals import Global, Storage, WrongError, global_of, wrong

MAX_PICKLE_BYTES = 1 << 26
MAX_OPERATIONS = 1 << 22
_HINT = "the file is damaged or not complete: download it again"

_MARK = object()
_OPERATIONS = {operation.code: operation for operation in pickletools.opcodes}


def load(pickle: bytes, path: Path) -> Any:
    """The object that a checkpoint's pickle stands for.

    Args:
        pickle: The member `data.pkl`.
        path: The archive, for messages.

    Returns:
        Dictionaries, lists, tuples, text, bytes, numbers, booleans, None, and `TensorView`s. Containers may be shared.

    Raises:
        BadFileError: Damaged or hostile content.
        UnsupportedError: A global that is neither a tensor nor a plain container; it is named.
    """
    if len(pickle) > MAX_PICKLE_BYTES:
        expected = f"at most {MAX_PICKLE_BYTES} bytes"
        raise BadFileError("the pickle is too large", path=path, expected=expected, got=len(pickle))
    machine = _Machine()
    stream = BytesIO(pickle)
    offset = 0
    try:
        for _ in range(MAX_OPERATIONS):
            offset = stream.tell()
            operation = _operation(stream.read(1))
            if operation.name == "STOP":
                return machine.pop()
            argument = None if operation.arg is None else operation.arg.reader(stream)
            _STEPS[operation.name](machine, argument)
        raise WrongError(f"more than {MAX_OPERATIONS} operations")
    except UnsupportedError as error:
        raise UnsupportedError(error.what, path=path, got=error.got, expected=error.expected, hint=error.hint) from None
    except WrongError as error:
        raise BadFileError(
            "the pickle is not one of a checkpoint", path=path, offset=offset, got=error.args[0], hint=_HINT
        ) from None
    except (ValueError, OverflowError) as error:
        raise BadFileError("the pickle is damaged", path=path, offset=offset, got=error, hint=_HINT) from None


def _operation(code: bytes) -> pickletools.OpcodeInfo:
    if not code:
        raise ValueError("the end of the pickle")
    operation = _OPERATIONS.get(code.decode("latin-1"))
    if operation is None or (operation.name not in _STEPS and operation.name != "STOP"):
        raise WrongError(f"the operation {operation.name if operation else code.hex()}")
    return operation


class _Machine:
    """A stack and a memo. The memo is a dictionary, so that a large index takes no room."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise WrongError("an empty stack")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise WrongError("an empty stack")
        return self.stack[-1]

    def pop_many(self, n: int) -> list[Any]:
        return [self.pop() for _ in range(n)][::-1]

    def pop_to_mark(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                items = self.stack[place + 1 :]
                del self.stack[place:]
                return items
        raise WrongError("no mark on the stack")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def get(self, index: int) -> None:
        if index not in self.memo:
            wrong("an unknown memo entry", index)
        self.push(self.memo[index])

    def put(self, index: int) -> None:
        self.memo[index] = self.top()

    def append(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) is not list:
            wrong("items for something that is no list", target)
        target.extend(items)

    def set(self, pairs: list[Any]) -> None:
        target = self.top()
        if type(target) is not dict or len(pairs) % 2:
            wrong("items for something that is no dictionary", target)
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(key) not in (str, int, bool, float, type(None)):
                wrong("a key that is neither text nor a number", key)
            target[key] = value

    def global_(self, name: str) -> None:
        self.push(global_of(name))

    def global_of_stack(self) -> None:
        module, name = self.pop_many(2)
        if type(module) is not str or type(name) is not str:
            wrong("a global without a name", (module, name))
        self.push(global_of(f"{module} {name}"))

    def reduce(self) -> None:
        function, arguments = self.pop_many(2)
        if type(function) is not Global or function.build is None or type(arguments) is not tuple:
            wrong("a call of something that cannot be called", function)
        self.push(function.build(arguments))

    def build(self) -> None:
        # The state of an ordered dictionary: versions of the modules that its tensors are from.
        self.pop()
        if type(self.top()) is not dict:
            wrong("a state for something that is no dictionary", self.top())

    def storage(self) -> None:
        match self.pop():
            case ("storage", Global() as kind, str() as key, str(), int()) if kind.name.endswith("Storage"):
                self.push(Storage(key, kind.dtype))
            case other:
                wrong("a storage of another form", other)


def _push(machine: _Machine, argument: Any) -> None:
    machine.push(argument)


def _pass(machine: _Machine, argument: Any) -> None:
    """For operations that say how the pickle is written."""


_Step = Callable[[_Machine, Any], None]

_STEPS: dict[str, _Step] = {
    "PROTO": _pass,
    "FRAME": _pass,
    "MARK": lambda m, _: m.push(_MARK),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT"), _push),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"), _push),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), _push),
    **dict.fromkeys(("SHORT_BINSTRING", "BINSTRING"), _push),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "TUPLE": lambda m, _: m.push(tuple(m.pop_to_mark())),
    "TUPLE1": lambda m, _: m.push(tuple(m.pop_many(1))),
    "TUPLE2": lambda m, _: m.push(tuple(m.pop_many(2))),
    "TUPLE3": lambda m, _: m.push(tuple(m.pop_many(3))),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "APPEND": lambda m, _: m.append(m.pop_many(1)),
    "APPENDS": lambda m, _: m.append(m.pop_to_mark()),
    "EMPTY_DICT": lambda m, _: m.push({}),
    "SETITEM": lambda m, _: m.set(m.pop_many(2)),
    "SETITEMS": lambda m, _: m.set(m.pop_to_mark()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda m, index: m.put(index)),
    "MEMOIZE": lambda m, _: m.put(len(m.memo)),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, index: m.get(index)),
    "GLOBAL": lambda m, name: m.global_(name),
    "STACK_GLOBAL": lambda m, _: m.global_of_stack(),
    "REDUCE": lambda m, _: m.reduce(),
    "BUILD": lambda m, _: m.build(),
    "BINPERSID": lambda m, _: m.storage(),
}
